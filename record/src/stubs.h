/* Numbers that C and assembly share. */
#ifndef MEMLODE_STUBS_H
#define MEMLODE_STUBS_H

#define MEMLODE_STUBS 512     /* of handlers that a program may have; see signals.c for those beyond */
#define MEMLODE_STUB_BYTES 16 /* from one stub to the next */

/* sizeof(struct memlode_activation) */
#define MEMLODE_ACTIVATION_BYTES 40

/* CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_VFORK | CLONE_THREAD | CLONE_SYSVSEM */
#define MEMLODE_APART_FLAGS 0x54b00

/* SYS_seccomp, and the calls that make children; AArch64 has no SYS_fork. */
#if defined(__x86_64__)
#define MEMLODE_SECCOMP 317
#define MEMLODE_CLONE 56
#define MEMLODE_FORK 57
#else
#define MEMLODE_SECCOMP 277
#define MEMLODE_CLONE 220
#endif
#define MEMLODE_CLONE3 435

#endif
