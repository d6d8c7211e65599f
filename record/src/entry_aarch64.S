/* uint64_t *__memlode_refill(uint64_t *cursor)
 *
 * Called from the middle of instrumented code, which counts on every register but x0 and the
 * flags. memlode_refill keeps x19 to x28 and is compiled without vector registers, so x1 to x18
 * and the link register are left to save. */
	.text
	.globl	__memlode_refill
	.type	__memlode_refill, %function
	.p2align 4
__memlode_refill:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x29, x30, [sp, #-176]!
	.cfi_def_cfa_offset 176
	.cfi_offset x29, -176
	.cfi_offset x30, -168
	mov	x29, sp
	stp	x1, x2, [sp, #16]
	stp	x3, x4, [sp, #32]
	stp	x5, x6, [sp, #48]
	stp	x7, x8, [sp, #64]
	stp	x9, x10, [sp, #80]
	stp	x11, x12, [sp, #96]
	stp	x13, x14, [sp, #112]
	stp	x15, x16, [sp, #128]
	stp	x17, x18, [sp, #144]
	bl	memlode_refill
	ldp	x1, x2, [sp, #16]
	ldp	x3, x4, [sp, #32]
	ldp	x5, x6, [sp, #48]
	ldp	x7, x8, [sp, #64]
	ldp	x9, x10, [sp, #80]
	ldp	x11, x12, [sp, #96]
	ldp	x13, x14, [sp, #112]
	ldp	x15, x16, [sp, #128]
	ldp	x17, x18, [sp, #144]
	ldp	x29, x30, [sp], #176
	.cfi_restore x30
	.cfi_restore x29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	__memlode_refill, .-__memlode_refill

	.section .note.GNU-stack,"",%progbits
