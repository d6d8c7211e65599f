/* Stack walkers come through a handler: crash reporters, profilers, exceptions, the end of a
 * thread. Prints how many frames each sees, and which of them are this program's. */
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "objects.h"

long cells[64];
static char *forbidden;

__attribute__((noinline)) static void touch_cells(int steps) {
  for (int i = 0; i < steps; i++)
    cells[(i * 7) & 63] += i;
}

/* --- frames --- */

extern "C" const char __executable_start, etext;

struct frames {
  int count;
  char images[128];
};

/* 'p': the program itself. What is in between is libc's, or the runtime's. */
static _Unwind_Reason_Code see(_Unwind_Context *context, void *argument) {
  auto &seen = *static_cast<frames *>(argument);
  uintptr_t at = _Unwind_GetIP(context);
  bool is_own = at >= (uintptr_t)&__executable_start && at < (uintptr_t)&etext;
  if (seen.count < 127)
    seen.images[seen.count++] = is_own ? 'p' : '-';
  return _URC_NO_REASON;
}

__attribute__((noinline)) static void tell_frames() {
  frames seen = {};
  _Unwind_Reason_Code end = _Unwind_Backtrace(see, &seen);
  printf("%d frames: %s, end %d\n", seen.count, seen.images, end);
}

static sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

static void on_frames(int signal, siginfo_t *, void *context) {
  touch_cells(10);
  tell_frames();
  if (signal == SIGSEGV) { /* go on where it may be touched */
    mprotect(forbidden, 4096, PROT_READ | PROT_WRITE);
    touch_cells(5);
  }
  asm volatile("" ::"r"(context) : "memory");
}

static void on_outer(int) {
  touch_cells(10);
  raise(SIGUSR2);
  asm volatile("" ::: "memory");
}

__attribute__((noinline)) static int recurse(int depth, volatile char *at) {
  touch_cells(3);
  if (depth == 0) {
    *at = 1;
    return 1;
  }
  int result = recurse(depth - 1, at);
  asm volatile("" : "+r"(result)::"memory");
  return result + 1;
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(signal, &action, nullptr);
}

static void show_frames() {
  static char alternate[1 << 16];
  stack_t stack = {.ss_sp = alternate, .ss_flags = 0, .ss_size = sizeof alternate};
  sigaltstack(&stack, nullptr);
  for (int flags : {0, SA_ONSTACK}) {
    install(SIGSEGV, on_frames, flags);
    mprotect(forbidden, 4096, PROT_NONE);
    recurse(10, forbidden);
  }
  install(SIGUSR2, on_frames, SA_ONSTACK);
  signal(SIGUSR1, on_outer);
  raise(SIGUSR1);
  signal(SIGUSR1, SIG_DFL);
}

/* --- exceptions --- */

struct guard {
  long &ends;
  ~guard() {
    ends++;
    touch_cells(2);
  }
};

static long hits;

static void on_throw(int signal, siginfo_t *, void *) {
  sigset_t set = only(signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  long ends = 0;
  [[maybe_unused]] guard inside{ends};
  touch_cells(10);
  hits++;
  throw 7;
}

static void on_catch(int, siginfo_t *, void *) {
  try {
    touch_cells(5);
    throw 3;
  } catch (int value) {
    hits += value;
  }
}

__attribute__((noinline)) static void fault(volatile char *at) {
  touch_cells(10);
  if (!at)
    throw 1; /* so that the compiler expects one */
  *at = 1;
  touch_cells(1000000);
}

static void throw_out() {
  long caught = 0, ends = 0;
  mprotect(forbidden, 4096, PROT_NONE);
  for (int flags : {0, SA_ONSTACK}) {
    install(SIGSEGV, on_throw, flags);
    for (int i = 0; i < 200; i++)
      try { /* `fault` itself has nothing to be done on the way: its instruction is no call */
        guard outside{ends};
        fault(forbidden);
      } catch (int value) {
        caught += value;
        touch_cells(100);
      }
  }
  touch_cells(1000);
  install(SIGUSR1, on_catch, 0);
  for (int i = 0; i < 100; i++)
    raise(SIGUSR1);
  printf("caught %ld of %ld, %ld ends\n", caught, hits, ends);
}

/* --- the end of a thread --- */

static long thread_ends;

static void on_exit_thread(int, siginfo_t *, void *) {
  [[maybe_unused]] guard inside{thread_ends};
  touch_cells(10);
  pthread_exit(nullptr);
}

static void on_wait(int, siginfo_t *, void *) {
  [[maybe_unused]] guard inside{thread_ends};
  touch_cells(10);
  for (;;)
    pause(); /* until it is cancelled */
}

static void *thread(void *signal) {
  guard outside{thread_ends};
  touch_cells(100);
  raise((int)(intptr_t)signal);
  printf("this thread goes on\n");
  return nullptr;
}

static void end_threads() {
  install(SIGUSR1, on_exit_thread, 0);
  install(SIGUSR2, on_wait, 0);
  for (int signal : {SIGUSR1, SIGUSR2})
    for (int i = 0; i < 20; i++) {
      pthread_t id;
      pthread_create(&id, nullptr, thread, (void *)(intptr_t)signal);
      if (signal == SIGUSR2)
        pthread_cancel(id);
      pthread_join(id, nullptr);
    }
  printf("%ld ends of threads\n", thread_ends);
}

__attribute__((noinline)) static void run_all() {
  show_frames();
  throw_out();
  end_threads();
  touch_cells(100000);
}

int main() {
  OBJECT(cells);
  forbidden = (char *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  run_all();
  return 0;
}
