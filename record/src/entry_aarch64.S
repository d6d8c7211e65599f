/* uint64_t *__memlode_refill(uint64_t *cursor)
 * uint64_t *__memlode_more(uint64_t *cursor)
 * uint64_t *__memlode_switch(uint64_t *cursor)
 *
 * Called from the middle of instrumented code, which counts on every register but x0 and the
 * flags. The C function keeps x19 to x28 and is compiled without vector registers, so x1 to x18
 * and the link register are left to save. */
#include "stubs.h"

	.text
.macro entry function
	.globl	__\function
	.type	__\function, %function
	.p2align 4
__\function:
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
	bl	\function
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
	.size	__\function, .-__\function
.endm

	entry memlode_refill
	entry memlode_more
	entry memlode_switch

/* long memlode_run_apart(void (*function)(void *), void *argument, char *end_of_stack) */
	.globl	memlode_run_apart
	.hidden	memlode_run_apart
	.type	memlode_run_apart, %function
	.p2align 4
memlode_run_apart:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x0, x1, [x2, #-16]!
	mov	x1, x2
	ldr	x0, =MEMLODE_APART_FLAGS
	mov	x2, xzr
	mov	x3, xzr
	mov	x4, xzr
	mov	x8, #220		/* clone */
	svc	#0
	cbz	x0, 1f
	ret
1:	.cfi_undefined x30
	mov	x29, xzr
	ldp	x9, x0, [sp], #16
	blr	x9
	mov	x0, xzr
	mov	x8, #93			/* exit */
	svc	#0
	brk	#0
	.cfi_endproc
	.ltorg
	.size	memlode_run_apart, .-memlode_run_apart

/* long syscall(long number, ...): as libc's, but that seccomp ends the recording, and that children are seen. Not
 * a C function: they may return on another stack. */
	.weak	syscall
	.type	syscall, %function
	.p2align 4
syscall:
	.cfi_startproc
	hint	#34			/* bti c */
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	cmp	w8, #MEMLODE_SECCOMP
	b.eq	memlode_enter_seccomp
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	cmp	w8, #MEMLODE_CLONE
	b.eq	1f
	cmp	w8, #MEMLODE_CLONE3
	b.eq	1f
	svc	#0
	cmn	x0, #4095
	b.hs	memlode_fail
	ret
	/* Number and arguments lie on the stack as an array of seven; the word that comes back goes to the parent in
	 * x5, the last argument, which none of these calls has. */
1:	stp	x8, x0, [sp, #-80]!
	.cfi_adjust_cfa_offset 80
	stp	x1, x2, [sp, #16]
	stp	x3, x4, [sp, #32]
	stp	x5, x30, [sp, #48]
	.cfi_rel_offset x30, 56
	mov	x0, sp
	bl	memlode_before_child
	mov	x5, x0
	ldr	x30, [sp, #56]
	.cfi_restore x30
	ldp	x3, x4, [sp, #32]
	ldp	x1, x2, [sp, #16]
	ldp	x8, x0, [sp], #80
	.cfi_adjust_cfa_offset -80
	svc	#0
	cbz	x0, 2f
	stp	x0, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x30, 8
	mov	x1, x5
	bl	memlode_after_child
	ldp	x0, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x30
	cmn	x0, #4095
	b.hs	memlode_fail
	ret
2:	stp	x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	bl	memlode_begin_child
	ldp	x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x29
	.cfi_restore x30
	mov	x0, xzr
	ret
	.cfi_endproc
	.size	syscall, .-syscall

/* The stubs of signals.c: each adds its number to a handler's three arguments. A handler without
 * SA_SIGINFO gets one argument from the kernel, so the address of its context, behind the 128 bytes
 * of siginfo on the stack, is found here. */
	.globl	memlode_stubs
	.hidden	memlode_stubs
	.type	memlode_stubs, %function
	.p2align 4
memlode_stubs:
	.cfi_startproc
	.set	number, 0
	.rept	MEMLODE_STUBS
	hint	#34			/* bti c */
	add	x2, sp, #128
	mov	w3, #number
	b	1f
	.set	number, number + 1
	.org	memlode_stubs + MEMLODE_STUB_BYTES * number
	.endr
1:	b	memlode_run_handler
	.cfi_endproc
	.size	memlode_stubs, .-memlode_stubs

/* Calls the program's handler. Whoever walks the stack sees a frame more than without us: on this architecture
 * the unwinders know the kernel's signal frame by its code, and have no common way to describe another. An
 * exception passes the personality on its way out. */
	.type	memlode_run_handler, %function
	.p2align 4
memlode_run_handler:
	.cfi_startproc
	.cfi_personality 0x1b, memlode_unwind_handler
	stp	x29, x30, [sp, #-96]!
	.cfi_def_cfa_offset 96
	.cfi_offset x29, -96
	.cfi_offset x30, -88
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	add	x4, sp, #40
	bl	memlode_enter_handler
	mov	x9, x0
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	blr	x9
	add	x0, sp, #40
	bl	memlode_end_handler
	ldp	x29, x30, [sp], #96
	.cfi_restore x30
	.cfi_restore x29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	memlode_run_handler, .-memlode_run_handler

	.section .note.GNU-stack,"",%progbits
