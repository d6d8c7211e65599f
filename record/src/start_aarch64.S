/* The entry of a static program. */
	.text
	.globl	__memlode_start
	.type	__memlode_start, %function
	.p2align 4
__memlode_start:
	.cfi_startproc
	.cfi_undefined x30
	hint	#34			/* bti c */
	stp	x0, xzr, [sp, #-16]!
	bl	memlode_prepare_thread
	ldp	x0, xzr, [sp], #16
	mov	x29, xzr
	mov	x30, xzr
	b	_start
	.cfi_endproc
	.size	__memlode_start, .-__memlode_start

	.section .note.GNU-stack,"",%progbits
