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
#include "stubs.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>
#include <unwind.h>

/* libc's own name for sigaction. That for signal is ssignal, in <signal.h>. */
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

MEMLODE_EXPORT int sigaction(int signal, const struct sigaction *restrict action,
                             struct sigaction *restrict previous) {
  struct sigaction wrapped;
  if (action) {
    wrapped = *action;
    wrapped.sa_sigaction = stub_for(signal, action->sa_sigaction);
  }
  int result = __sigaction(signal, action ? &wrapped : NULL, previous);
  if (result == 0 && previous)
    previous->sa_sigaction = function_behind(previous->sa_sigaction);
  return result;
}

MEMLODE_EXPORT sighandler_t signal(int signal, sighandler_t handler) {
  sighandler_t previous = ssignal(signal, as_handler(stub_for(signal, as_function(handler))));
  return previous == SIG_ERR ? SIG_ERR : as_handler(function_behind(as_function(previous)));
}

MEMLODE_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }

/* The function that <signal.h> makes of `signal` for strictly conforming programs. */
MEMLODE_EXPORT sighandler_t __sysv_signal(int signal, sighandler_t handler) {
  struct sigaction action = {.sa_flags = (int)(SA_RESETHAND | SA_NODEFER)}, previous;
  action.sa_handler = handler;
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return sigaction(signal, &action, &previous) < 0 ? SIG_ERR : previous.sa_handler;
}

MEMLODE_EXPORT sighandler_t sysv_signal(int signal, sighandler_t handler) {
  return __sysv_signal(signal, handler);
}

/* X/Open's: also lets the signal through, or holds it back. */
MEMLODE_EXPORT sighandler_t sigset(int signal, sighandler_t handler) {
  struct sigaction action = {.sa_flags = 0}, previous;
  sigset_t set, blocked;
  action.sa_handler = handler;
  sigemptyset(&set);
  if (handler == SIG_ERR || sigaddset(&set, signal) < 0) {
    errno = EINVAL;
    return SIG_ERR;
  }
  bool hold = handler == SIG_HOLD;
  if (sigaction(signal, hold ? NULL : &action, &previous) < 0 ||
      sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, &blocked) < 0)
    return SIG_ERR;
  return sigismember(&blocked, signal) == 1 ? SIG_HOLD : previous.sa_handler;
}
