/* Switches user threads; not instrumented. */
#include "switches.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { MAIN = WORKERS, CONTEXTS, STACK_BYTES = 0x10000 };

static _Alignas(16) char stacks[WORKERS][STACK_BYTES];
static const char *way;
static volatile int current = MAIN, alive[CONTEXTS];
static volatile long switches;

static ucontext_t contexts[CONTEXTS];
static sigjmp_buf jumps[CONTEXTS];
#if defined(__x86_64__)
static void *stack_pointers[CONTEXTS];

/* void exchange_stacks(void **from, void *to) */
void exchange_stacks(void **from, void *to);
__asm__("exchange_stacks:\n"
        "  pushq %rbx\n  pushq %rbp\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbp\n  popq %rbx\n"
        "  retq\n");
#endif

static int is_assembly(void) {
#if defined(__x86_64__)
  return !strcmp(way, "assembly");
#else
  return 0;
#endif
}

static void set_alarm_blocked(int blocked) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, 0);
}

static void switch_to(int next) {
  int from = current;
  if (next == from)
    return;
  current = next;
  switches++;
  if (!strcmp(way, "jump")) {
    if (!sigsetjmp(jumps[from], 1))
      siglongjmp(jumps[next], 1);
#if defined(__x86_64__)
  } else if (is_assembly()) {
    exchange_stacks(&stack_pointers[from], stack_pointers[next]);
#endif
  } else {
    swapcontext(&contexts[from], &contexts[next]);
  }
}

static int next_worker(void) {
  for (int i = 1; i <= WORKERS; i++)
    if (alive[(current + i) % WORKERS])
      return (current + i) % WORKERS;
  return MAIN;
}

static void tick(int signal) {
  (void)signal;
  if (current != MAIN)
    switch_to(next_worker());
}

static void run_worker(void) {
  int worker = current;
  set_alarm_blocked(0);
  work(worker);
  set_alarm_blocked(1);
  alive[worker] = 0;
  switch_to(next_worker());
}

/* A handler on the worker's stack, which stays there: it is where the worker begins. */
static volatile int beginning;
static void begin_by_jump(int signal) {
  (void)signal;
  if (sigsetjmp(jumps[beginning], 0)) {
    run_worker();
    abort();
  }
}

static void prepare(int worker) {
  alive[worker] = 1;
  if (!strcmp(way, "jump")) {
    stack_t stack = {.ss_sp = stacks[worker], .ss_size = STACK_BYTES}, none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_flags = SA_ONSTACK};
    action.sa_handler = begin_by_jump;
    sigaltstack(&stack, 0);
    sigaction(SIGUSR1, &action, 0);
    beginning = worker;
    raise(SIGUSR1);
    sigaltstack(&none, 0);
#if defined(__x86_64__)
  } else if (is_assembly()) {
    uintptr_t start = (uintptr_t)run_worker;
    char *top = stacks[worker] + STACK_BYTES - 8 * sizeof start;
    memcpy(top + 6 * sizeof start, &start, sizeof start);
    stack_pointers[worker] = top;
#endif
  } else {
    getcontext(&contexts[worker]);
    contexts[worker].uc_stack.ss_sp = stacks[worker];
    contexts[worker].uc_stack.ss_size = STACK_BYTES;
    makecontext(&contexts[worker], run_worker, 0);
  }
}

void run_workers(const char *which, int with_timer) {
  way = which;
  /* A context that let the alarm in could be saved again while swapcontext is still restoring it. */
  set_alarm_blocked(1);
  for (int worker = 0; worker < WORKERS; worker++)
    prepare(worker);
  struct sigaction action = {.sa_flags = SA_RESTART};
  action.sa_handler = tick;
  sigaction(SIGALRM, &action, 0);
  struct itimerval timer = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
  if (with_timer)
    setitimer(ITIMER_REAL, &timer, 0);
  switch_to(0);
  setitimer(ITIMER_REAL, &off, 0);
  set_alarm_blocked(0);
  fprintf(stderr, "switches %ld\n", switches);
}
