/* The entry of a static program. */
	.text
	.globl	__memlode_start
	.type	__memlode_start, @function
	.p2align 4
__memlode_start:
	.cfi_startproc
	.cfi_undefined rip
	xorl	%ebp, %ebp
	pushq	%rdx
	pushq	%rdx
	callq	memlode_prepare_thread
	popq	%rdx
	popq	%rdx
	jmp	_start
	.cfi_endproc
	.size	__memlode_start, .-__memlode_start

	.section .note.GNU-stack,"",@progbits
