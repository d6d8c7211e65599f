/* Signal handlers: each is installed behind a stub that gives it a stream of its own (streams.c).
 *
 *   the kernel ──► stub number n ──► memlode_run_handler (entry_*.S) ──► functions[n], the program's handler
 *
 * Stub n stands for one function for ever. So the kernel's table remains the only one there is:
 * nothing of ours can disagree with it when threads install handlers at once, when `system` or
 * `siginterrupt` puts one aside and back, after SA_RESETHAND, or in a child; and a program that asks for its
 * handler is told the function that the stub stands for. Of a program that has more functions than those,
 * each signal has two stubs that change: a function takes the one that is not installed.
 *
 * These definitions are found instead of libc's when the program itself links the runtime. A
 * handler that came another way (a bare system call, a program that got the runtime with a
 * library it loaded) runs on the stream it interrupts, and may write over the last words there. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>
#include <unwind.h>

/* libc's own name for sigaction. */
extern int __sigaction(int, const struct sigaction *, struct sigaction *);

/* A handler, however many arguments it wants. */
typedef void handler_function(int, siginfo_t *, void *);

extern const char memlode_stubs[MEMLODE_STUBS][MEMLODE_STUB_BYTES] MEMLODE_HIDDEN;

/* The last stubs are two for each signal. */
enum { SIGNALS = 65, LASTING_STUBS = MEMLODE_STUBS - 2 * SIGNALS };

static _Atomic(handler_function *) functions[MEMLODE_STUBS];

static handler_function *as_function(sighandler_t handler) { return (handler_function *)(uintptr_t)handler; }

static sighandler_t as_handler(handler_function *function) { return (sighandler_t)(uintptr_t)function; }

static bool is_stub(handler_function *function) {
  return (uintptr_t)function - (uintptr_t)memlode_stubs < sizeof memlode_stubs;
}

static handler_function *stub(size_t number) { return (handler_function *)(uintptr_t)memlode_stubs[number]; }

/* Returns what to install for a handler of the program's. */
static handler_function *stub_for(int signal, handler_function *function) {
  if ((uintptr_t)function <= (uintptr_t)SIG_HOLD || function == as_function(SIG_ERR) || is_stub(function))
    return function; /* SIG_DFL, SIG_IGN and the like are no functions */
  for (size_t i = 0; i < LASTING_STUBS; i++) {
    handler_function *known = NULL;
    if (atomic_compare_exchange_strong_explicit(&functions[i], &known, function, memory_order_release,
                                                memory_order_relaxed) ||
        known == function)
      return stub(i);
  }
  struct sigaction installed;
  if (signal <= 0 || signal >= SIGNALS || __sigaction(signal, NULL, &installed) < 0)
    return function; /* it will be refused */
  size_t number = LASTING_STUBS + 2 * (size_t)signal;
  if (installed.sa_sigaction == stub(number))
    number++;
  atomic_store_explicit(&functions[number], function, memory_order_release);
  return stub(number);
}

/* Returns what the program knows a handler by. */
static handler_function *function_behind(handler_function *installed) {
  if (!is_stub(installed))
    return installed;
  size_t i = ((uintptr_t)installed - (uintptr_t)memlode_stubs) / MEMLODE_STUB_BYTES;
  return atomic_load_explicit(&functions[i], memory_order_acquire);
}

/* Returns where the interrupted code's stack ended. */
static uintptr_t stack_pointer_of(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  return (uintptr_t)context->uc_mcontext.sp;
#endif
}

/* Called for a stub (entry_*.S). The kernel supplies all three arguments on x86-64, and the stub does on
 * AArch64, whether or not the program asked for them with SA_SIGINFO. Returns the program's handler. */
MEMLODE_HIDDEN handler_function *memlode_enter_handler(int signal, const siginfo_t *info,
                                                       const ucontext_t *context, unsigned stub,
                                                       struct memlode_activation *activation) {
  (void)info;
  uintptr_t frame = (uintptr_t)activation;
  uintptr_t alternate = (uintptr_t)context->uc_stack.ss_sp;
  activation->frame = frame;
  activation->stack_low = frame - alternate < context->uc_stack.ss_size ? alternate : 0;
  activation->interrupted_at = stack_pointer_of(context);
  activation->faulted = signal == SIGSEGV || signal == SIGBUS;
  memlode_begin_handler(activation);
  return atomic_load_explicit(&functions[stub], memory_order_acquire);
}

/* The personality of what calls handlers: an exception that comes by, or a thread's end, leaves one for good.
 */
MEMLODE_HIDDEN _Unwind_Reason_Code memlode_unwind_handler(int version, _Unwind_Action actions,
                                                          uint64_t exception_class,
                                                          const struct _Unwind_Exception *exception,
                                                          const struct _Unwind_Context *context) {
  (void)version, (void)exception_class, (void)exception, (void)context;
  if (actions & _UA_CLEANUP_PHASE)
    memlode_leave_handler((uintptr_t)__builtin_frame_address(0));
  return _URC_CONTINUE_UNWIND;
}

MEMLODE_HIDDEN int memlode_sigaction(int signal, const struct sigaction *restrict action,
                                     struct sigaction *restrict previous) {
  struct sigaction wrapped;
  if (action) {
    memlode_copy(&wrapped, action, sizeof wrapped);
    wrapped.sa_sigaction = stub_for(signal, action->sa_sigaction);
  }
  int result = __sigaction(signal, action ? &wrapped : NULL, previous);
  if (result == 0 && previous)
    previous->sa_sigaction = function_behind(previous->sa_sigaction);
  return result;
}
MEMLODE_INTERPOSE(sigaction);

MEMLODE_HIDDEN sighandler_t memlode_signal(int signal, sighandler_t handler) {
  sighandler_t previous = memlode_libc_signal(signal, as_handler(stub_for(signal, as_function(handler))));
  return previous == SIG_ERR ? SIG_ERR : as_handler(function_behind(as_function(previous)));
}
MEMLODE_INTERPOSE(signal);

MEMLODE_HIDDEN sighandler_t memlode_bsd_signal(int number, sighandler_t handler) {
  return memlode_signal(number, handler);
}
MEMLODE_INTERPOSE(bsd_signal);

static sighandler_t refuse(void) {
  errno = EINVAL;
  return SIG_ERR;
}

/* Installs a handler with a mask that is empty. */
static sighandler_t install_with(int signal, sighandler_t handler, int flags) {
  static const struct sigaction none;
  struct sigaction action, previous;
  memlode_copy(&action, &none, sizeof action);
  action.sa_flags = flags;
  action.sa_handler = handler;
  return memlode_sigaction(signal, &action, &previous) < 0 ? SIG_ERR : previous.sa_handler;
}

/* The function that <signal.h> makes of `signal` for strictly conforming programs. */
MEMLODE_HIDDEN sighandler_t memlode___sysv_signal(int signal, sighandler_t handler) {
  return handler == SIG_ERR ? refuse() : install_with(signal, handler, (int)(SA_RESETHAND | SA_NODEFER));
}
MEMLODE_INTERPOSE(__sysv_signal);

MEMLODE_HIDDEN sighandler_t memlode_sysv_signal(int signal, sighandler_t handler) {
  return memlode___sysv_signal(signal, handler);
}
MEMLODE_INTERPOSE(sysv_signal);

/* X/Open's: also lets the signal through, or holds it back. */
MEMLODE_HIDDEN sighandler_t memlode_sigset(int signal, sighandler_t handler) {
  if (handler == SIG_ERR || signal <= 0 || signal >= SIGNALS)
    return refuse();
  struct sigaction found;
  sighandler_t previous = SIG_ERR;
  bool hold = handler == SIG_HOLD;
  if (!hold)
    previous = install_with(signal, handler, 0);
  else if (memlode_sigaction(signal, NULL, &found) == 0)
    previous = found.sa_handler;
  uint64_t set = (uint64_t)1 << (signal - 1), blocked = 0;
  if (previous == SIG_ERR)
    return SIG_ERR;
  memlode_call(SYS_rt_sigprocmask, hold ? SIG_BLOCK : SIG_UNBLOCK, &set, &blocked, sizeof set);
  return blocked & set ? SIG_HOLD : previous;
}
MEMLODE_INTERPOSE(sigset);
