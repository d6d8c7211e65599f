/* A profiler interrupts the runtime, at every instruction of its refills where a signal can come, and walks
 * the stack: it has to come to `work` and to the frames beyond. The program's parent has it take single
 * steps, and sends it a signal after each one in the runtime. Prints how many walks there were. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "emit.h"

#if defined(__x86_64__)
/* Why the program stops. */
enum { NOTHING, BEGIN, WALKED, END };
static volatile long marker;

static void stop(long why) {
  marker = why;
  __asm__ volatile("int3" ::: "memory");
}

/* The runtime's code, or in a static program all code. */
static uintptr_t low, high;

static int find_runtime(struct dl_phdr_info *info, size_t size, void *wanted) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
        (uintptr_t)wanted - start < segment->p_memsz) {
      low = start;
      high = start + segment->p_memsz;
    }
  }
  return 0;
}

__attribute__((noinline)) static void work(uint64_t first);

struct walk {
  int frames, behind_work;
};

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *argument) {
  struct walk *walk = argument;
  walk->frames++;
  if (walk->behind_work)
    walk->behind_work++;
  else if (_Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(context) - 1)) == (void *)(uintptr_t)work)
    walk->behind_work = 1;
  return walk->frames > 1000 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static int expected;
static long walks;

static void profile(int signal) {
  (void)signal;
  emit_load(77);
  struct walk walk = {0, 0};
  _Unwind_Backtrace(see, &walk);
  if (!expected)
    expected = walk.behind_work;
  if (!expected || walk.behind_work != expected) {
    printf("after %ld walks: %d frames, %d from work on, not %d\n", walks, walk.frames, walk.behind_work,
           expected);
    fflush(stdout);
    _exit(1);
  }
  walks++;
  stop(WALKED);
}

/* The last words of a chunk, and the first ones of the next; then one of each kind of call. */
__attribute__((noinline)) static void work(uint64_t first) {
  raise(SIGUSR1); /* what is to be seen: here, natively */
  uint64_t *end = (uint64_t *)(((uintptr_t)__memlode_cursor & ~(uintptr_t)(MEMLODE_RING_CHUNK_BYTES - 1)) +
                               MEMLODE_RING_CHUNK_BYTES);
  while (__memlode_cursor && __memlode_cursor + 8 < end)
    emit_load(first++);
  stop(BEGIN);
  emit_loads(first, 8);
  __memlode_dormant_2((uint64_t)(uintptr_t)&memlode_test_anchors[ALLOC], 8, 16);
  __memlode_extent_string(0, "a string", 100);
  raise(SIGUSR2);
  stop(END);
}

static void on_other(int signal) {
  (void)signal;
  emit_load(78);
}

static void child(void) {
  signal(SIGUSR1, profile);
  signal(SIGUSR2, on_other);
  emit_load(1);
  ptrace(PTRACE_TRACEME, 0, 0, 0);
  raise(SIGSTOP);
  for (int i = 0; i < 3; i++)
    work(1000);
  printf("%s\n", walks > 300 ? "walked" : "too few walks");
  fflush(stdout);
  _exit(0);
}

static int next_stop(pid_t pid, enum __ptrace_request how, int signal) {
  int status = 0;
  ptrace(how, pid, 0, (void *)(long)signal);
  waitpid(pid, &status, 0);
  if (WIFEXITED(status))
    exit(WEXITSTATUS(status));
  if (!WIFSTOPPED(status)) {
    printf("the program was ended by signal %d\n", WTERMSIG(status));
    exit(1);
  }
  return WSTOPSIG(status);
}

static struct user_regs_struct registers_of(pid_t pid) {
  struct user_regs_struct registers;
  ptrace(PTRACE_GETREGS, pid, 0, &registers);
  return registers;
}

/* Returns whether the next instruction is the end of a handler: `syscall` with the number of rt_sigreturn. */
static int returns(pid_t pid, const struct user_regs_struct *registers) {
  return registers->rax == 15 && (ptrace(PTRACE_PEEKTEXT, pid, (void *)registers->rip, 0) & 0xffff) == 0x050f;
}

int main(void) {
  dl_iterate_phdr(find_runtime, (void *)(uintptr_t)__memlode_refill);
  pid_t pid = fork();
  if (!pid)
    child();
  int signal = 0, steps = 0, is_walking = 0, is_back = 1;
  int status;
  waitpid(pid, &status, 0);
  for (;;) {
    int stop = next_stop(pid, steps && !is_walking ? PTRACE_SINGLESTEP : PTRACE_CONT, signal);
    signal = stop == SIGTRAP ? 0 : stop;
    if (signal)
      continue;
    long why = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)&marker, 0);
    if (why != NOTHING) {
      ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)&marker, 0);
      steps = why == WALKED ? steps : why == BEGIN;
      is_back = why != WALKED;
      is_walking = 0;
      continue;
    }
    struct user_regs_struct registers = registers_of(pid);
    if (!is_back && returns(pid, &registers)) {
      /* Two steps on: the first one ends where the last walk began. */
      next_stop(pid, PTRACE_SINGLESTEP, 0);
      is_back = 1;
    } else if (is_back && registers.rip >= low && registers.rip < high) {
      signal = SIGUSR1;
      is_walking = 1;
    }
  }
}
#else
int main(void) {
  puts("walked");
  return 0;
}
#endif
