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
	/* 7 registers and the return address: the stack is 16-byte aligned here. */
	cld
	callq	\function
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

/* long syscall(long number, ...): as libc's, but that seccomp ends the recording. Not a C function: programs make
 * children through it that return on another stack. */
	.globl	syscall
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
	syscall
	cmpq	$-4095, %rax
	jae	1f
	retq
1:	movq	%rax, %rdi
	jmp	memlode_fail
	.cfi_endproc
	.size	syscall, .-syscall

/* The stubs of signals.c: each adds its number to a handler's three arguments. */
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
	jmp	memlode_run_handler
	.set	number, number + 1
	.org	memlode_stubs + MEMLODE_STUB_BYTES * number
	.endr
	.cfi_endproc
	.size	memlode_stubs, .-memlode_stubs

	.section .note.GNU-stack,"",@progbits
