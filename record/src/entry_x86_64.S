/* uint64_t *__memlode_refill(uint64_t *cursor)
 * uint64_t *__memlode_more(uint64_t *cursor)
 * uint64_t *__memlode_switch(uint64_t *cursor)
 *
 * Called from the middle of instrumented code, which counts on every register but rax, r11 and
 * the flags. The callee-saved ones are the C function's to keep, and it is compiled without
 * vector registers, so the seven that are left are all there is to save. */
#include "stubs.h"

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.text
.macro entry function
	.globl	__\function
	.type	__\function, @function
	.p2align 4
__\function:
	.cfi_startproc
	_CET_ENDBR
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	movq	%rsp, %rbp /* for those who walk frames without tables */
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
	pushq	%rax /* 8 registers, the return address and this one: the stack is 16-byte aligned here. */
	.cfi_adjust_cfa_offset 8
	cld
	callq	\function
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r10
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	retq
	.cfi_endproc
	.size	__\function, .-__\function
.endm

	entry memlode_refill
	entry memlode_more
	entry memlode_switch

/* long memlode_run_apart(void (*function)(void *), void *argument, char *end_of_stack) */
	.globl	memlode_run_apart
	.hidden	memlode_run_apart
	.type	memlode_run_apart, @function
	.p2align 4
memlode_run_apart:
	.cfi_startproc
	_CET_ENDBR
	movq	%rdi, -16(%rdx)
	movq	%rsi, -8(%rdx)
	leaq	-16(%rdx), %rsi
	movl	$MEMLODE_APART_FLAGS, %edi
	xorl	%edx, %edx
	xorl	%r10d, %r10d
	xorl	%r8d, %r8d
	movl	$56, %eax /* clone */
	syscall
	testq	%rax, %rax
	jz	1f
	retq
1:	.cfi_undefined rip
	xorl	%ebp, %ebp
	popq	%rax
	popq	%rdi
	callq	*%rax
	xorl	%edi, %edi
	movl	$60, %eax /* exit */
	syscall
	hlt
	.cfi_endproc
	.size	memlode_run_apart, .-memlode_run_apart

/* long syscall(long number, ...): as libc's, but that seccomp ends the recording, and that children are seen. Not
 * a C function: they may return on another stack. */
	.weak	syscall
	.type	syscall, @function
	.p2align 4
syscall:
	.cfi_startproc
	_CET_ENDBR
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	cmpl	$MEMLODE_SECCOMP, %eax
	je	memlode_enter_seccomp
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	cmpl	$MEMLODE_CLONE, %eax
	je	2f
	cmpl	$MEMLODE_FORK, %eax
	je	2f
	cmpl	$MEMLODE_CLONE3, %eax
	je	2f
	syscall
	cmpq	$-4095, %rax
	jae	1f
	retq
1:	movq	%rax, %rdi
	jmp	memlode_fail
	/* Number and arguments lie on the stack as an array of seven; the word that comes back goes to the parent in
	 * r9, the last argument, which none of these calls has. */
2:	pushq	%r9
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	%rsp, %rdi
	callq	memlode_before_child
	movq	%rax, %r9
	popq	%rax
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%r10
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	syscall
	testq	%rax, %rax
	jz	3f
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	%rax, %rdi
	movq	%r9, %rsi
	callq	memlode_after_child
	popq	%rax
	.cfi_adjust_cfa_offset -8
	cmpq	$-4095, %rax
	jae	1b
	retq
3:	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movq	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	andq	$-16, %rsp
	callq	memlode_begin_child
	movq	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	xorl	%eax, %eax
	retq
	.cfi_endproc
	.size	syscall, .-syscall

/* The stubs of signals.c: each adds its number to a handler's three arguments.
 *
 *   stack:  | siginfo | ucontext | return address | pad | activation | three arguments |
 *                                                                    ^ ACTIVATION    ^ rsp
 */
	.set	ACTIVATION, 24
	.set	FRAME, ACTIVATION + MEMLODE_ACTIVATION_BYTES + 8
	.globl	memlode_stubs
	.hidden	memlode_stubs
	.type	memlode_stubs, @function
	.p2align 4
memlode_stubs:
	.cfi_startproc
	.set	number, 0
	.rept	MEMLODE_STUBS
	_CET_ENDBR
	movl	$number, %ecx
	jmp	1f
	.set	number, number + 1
	.org	memlode_stubs + MEMLODE_STUB_BYTES * number
	.endr
1:	subq	$FRAME, %rsp
	.cfi_adjust_cfa_offset FRAME
	jmp	memlode_run_handler
	.globl	memlode_end_stub
	.hidden	memlode_end_stub
memlode_end_stub:
	addq	$FRAME, %rsp
	.cfi_adjust_cfa_offset -FRAME
	retq
	.cfi_endproc
	.size	memlode_stubs, .-memlode_stubs

/* The one who calls the program's handler says of itself that it is the kernel's signal frame: whoever walks the
 * stack comes from the handler to the interrupted code in two steps, as without us. Its registers are in the
 * kernel's ucontext; rsp is the same all the while. An exception passes the personality on its way out. */
.macro saved_at bytes, register
	.cfi_escape 0x10, \register, 3, 0x77, ((FRAME + 8 + \bytes) & 0x7f) | 0x80, (FRAME + 8 + \bytes) >> 7
.endm
	.type	memlode_run_handler, @function
	.p2align 4
	nop /* not memlode_stubs */
memlode_run_handler:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_personality 0x1b, memlode_unwind_handler
	.cfi_escape 0x0f, 4, 0x77, ((FRAME + 8 + 160) & 0x7f) | 0x80, (FRAME + 8 + 160) >> 7, 0x06
	saved_at 40, 8
	saved_at 48, 9
	saved_at 56, 10
	saved_at 64, 11
	saved_at 72, 12
	saved_at 80, 13
	saved_at 88, 14
	saved_at 96, 15
	saved_at 104, 5 /* rdi */
	saved_at 112, 4 /* rsi */
	saved_at 120, 6 /* rbp */
	saved_at 128, 3 /* rbx */
	saved_at 136, 1 /* rdx */
	saved_at 144, 0 /* rax */
	saved_at 152, 2 /* rcx */
	saved_at 160, 7 /* rsp */
	saved_at 168, 16 /* rip */
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	leaq	ACTIVATION(%rsp), %r8
	callq	memlode_enter_handler
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	callq	*%rax
	leaq	ACTIVATION(%rsp), %rdi
	callq	memlode_end_handler
	jmp	memlode_end_stub
	.cfi_endproc
	.size	memlode_run_handler, .-memlode_run_handler

	.section .note.GNU-stack,"",@progbits
