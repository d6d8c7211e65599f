//===- SyncPoints.cpp -----------------------------------------------------===//

#include "plan/SyncPoints.h"

#include "LlvmCompat.h"
#include "find/LibcAccesses.h"
#include "memlode_format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

/// The flag of a static variable of a C++ function: only the first call through it learns anything.
static bool isGuard(const Value *Pointer) {
  const auto *Variable = dyn_cast<GlobalVariable>(Pointer->stripPointerCasts());
  return Variable && Variable->getName().starts_with("_ZGV");
}

/// An update whose result is unused counts something, and acquires nothing.
bool acquires(const Instruction &I) {
  if (const auto *Load = dyn_cast<LoadInst>(&I))
    return isAcquireOrStronger(Load->getOrdering()) && Load->getSyncScopeID() != SyncScope::SingleThread &&
           !isGuard(Load->getPointerOperand());
  if (const auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return !Update->use_empty() && isAcquireOrStronger(Update->getOrdering()) &&
           Update->getSyncScopeID() != SyncScope::SingleThread;
  if (const auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
    return (isAcquireOrStronger(Exchange->getSuccessOrdering()) ||
            isAcquireOrStronger(Exchange->getFailureOrdering())) &&
           Exchange->getSyncScopeID() != SyncScope::SingleThread;
  if (const auto *Fence = dyn_cast<FenceInst>(&I))
    return isAcquireOrStronger(Fence->getOrdering()) && Fence->getSyncScopeID() != SyncScope::SingleThread;
  if (const auto *Call = dyn_cast<CallBase>(&I))
    if (const auto Done = libraryAtomic(*Call))
      return Done->Kind != MEMLODE_KIND_STORE &&
             (isAcquireOrStronger(Done->Order) || isAcquireOrStronger(Done->OrElse));
  return false;
}

Value *atomicObject(Instruction &I) {
  if (auto *Load = dyn_cast<LoadInst>(&I))
    return Load->getPointerOperand();
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return Store->getPointerOperand();
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return Update->getPointerOperand();
  if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
    return Exchange->getPointerOperand();
  if (const auto *Call = dyn_cast<CallBase>(&I))
    if (const auto Done = libraryAtomic(*Call))
      return Done->Object;
  return nullptr;
}

Value *releasedBy(Instruction &I) {
  AtomicOrdering Ordering = AtomicOrdering::NotAtomic;
  SyncScope::ID Scope = SyncScope::System;
  if (const auto *Store = dyn_cast<StoreInst>(&I)) {
    Ordering = Store->getOrdering();
    Scope = Store->getSyncScopeID();
  } else if (const auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
    Ordering = Update->getOrdering();
    Scope = Update->getSyncScopeID();
  } else if (const auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I)) {
    Ordering = Exchange->getSuccessOrdering();
    Scope = Exchange->getSyncScopeID();
  } else if (const auto *Call = dyn_cast<CallBase>(&I)) {
    if (const auto Done = libraryAtomic(*Call); Done && Done->Kind != MEMLODE_KIND_LOAD)
      Ordering = Done->Order;
  }
  return isReleaseOrStronger(Ordering) && Scope != SyncScope::SingleThread ? atomicObject(I) : nullptr;
}

/// C and C++ names of functions, as the linker knows them.
static bool isWaitingName(StringRef Name) {
  static const StringSet<> Names = {
      // POSIX threads
      "pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
      "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_rwlock_tryrdlock",
      "pthread_rwlock_trywrlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_timedwrlock",
      "pthread_rwlock_clockrdlock", "pthread_rwlock_clockwrlock", "pthread_spin_lock", "pthread_spin_trylock",
      "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_barrier_wait",
      "pthread_join", "pthread_tryjoin_np", "pthread_timedjoin_np", "pthread_clockjoin_np", "pthread_once",
      "sem_wait", "sem_trywait", "sem_timedwait", "sem_clockwait",
      // C11
      "mtx_lock", "mtx_trylock", "mtx_timedlock", "cnd_wait", "cnd_timedwait", "thrd_join", "call_once",
      // libstdc++ and libc++, where they are not inline
      "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", "_ZNSt6thread4joinEv",
      "__cxa_guard_acquire", "_ZNSt3__15mutex4lockEv", "_ZNSt3__15mutex8try_lockEv",
      "_ZNSt3__115recursive_mutex4lockEv", "_ZNSt3__115recursive_mutex8try_lockEv",
      "_ZNSt3__118condition_variable4waitERNS_11unique_lockINS_5mutexEEE", "_ZNSt3__16thread4joinEv",
      // OpenMP, of LLVM and of GCC
      "__kmpc_barrier", "__kmpc_critical", "__kmpc_critical_with_hint", "__kmpc_fork_call", "__kmpc_ordered",
      "__kmpc_reduce", "__kmpc_reduce_nowait", "__kmpc_single", "__kmpc_omp_taskwait", "__kmpc_end_taskgroup",
      "omp_set_lock", "omp_test_lock", "omp_set_nest_lock", "omp_test_nest_lock", "GOMP_barrier",
      "GOMP_critical_start", "GOMP_critical_name_start", "GOMP_parallel", "GOMP_taskwait",
      // the kernel
      "read", "readv", "recv", "recvfrom", "recvmsg", "poll", "ppoll", "select", "pselect", "epoll_wait",
      "epoll_pwait", "wait", "waitpid", "waitid", "wait3", "wait4", "sigwait", "sigwaitinfo", "syscall"};
  return Names.contains(Name);
}

/// Rust's library, compiled beforehand: the slow paths of its inlined functions.
static bool isWaitingRustName(StringRef Name) {
  if (!Name.starts_with("_RN") && !(Name.starts_with("_ZN") && Name.contains("17h")))
    return false;
  const std::string Plain = demangle(Name);
  const StringRef Path = Plain;
  if (!Path.starts_with("std::") && !Path.starts_with("<std::"))
    return false;
  return any_of(ArrayRef<StringRef>{"::lock_contended", "::read_contended", "::write_contended",
                                    "::Condvar::wait", "::Once::call", "::Once::wait", "::Thread::join",
                                    "thread::park", "::Parker::park", "thread::current::park"},
                [&](StringRef Part) { return Path.contains(Part); });
}

using SyncList = SmallVector<SyncCall, 3>;

/// \p What, for a call after whose beginning there may be other threads.
static SyncCall makingThreads(SyncCall What) {
  What.MakesThreads = true;
  return What;
}

/// The effects of functions on the order of threads, by their names.
static const StringMap<SyncList> &syncsByName() {
  constexpr bool InFront = false, Behind = true;
  using If = SyncCall::If;
  const auto done = [](SyncCall What, If Done) {
    What.Done = Done;
    return What;
  };
  const SyncList Lock = {{MEMLODE_SYNC_LOCK, 0, Behind}};
  const SyncList Unlock = {{MEMLODE_SYNC_UNLOCK, 0, InFront}};
  const SyncList Wait = {{MEMLODE_SYNC_WAIT, 0, Behind}};
  const SyncList Signal = {{MEMLODE_SYNC_SIGNAL, 0, InFront}};
  const SyncList WaitUnlocked = {
      {MEMLODE_SYNC_UNLOCK, 1, InFront}, {MEMLODE_SYNC_WAIT, 0, Behind}, {MEMLODE_SYNC_LOCK, 1, Behind}};
  const SyncList Meet = {{MEMLODE_SYNC_ARRIVE, 0, InFront}, {MEMLODE_SYNC_LEAVE, 0, Behind}};
  const SyncList TimedWaitUnlocked = {{MEMLODE_SYNC_UNLOCK, 1, InFront},
                                      done({MEMLODE_SYNC_WAIT, 0, Behind}, If::Zero),
                                      {MEMLODE_SYNC_LOCK, 1, Behind}};
  const SyncList TryLock = {done({MEMLODE_SYNC_LOCK, 0, Behind}, If::Zero)};
  const SyncList TryLockTrue = {done({MEMLODE_SYNC_LOCK, 0, Behind}, If::NotZero)};
  const SyncList TryWait = {done({MEMLODE_SYNC_WAIT, 0, Behind}, If::Zero)};
  const SyncList Fork = {makingThreads({MEMLODE_SYNC_SIGNAL, 2, InFront}),
                         {MEMLODE_SYNC_WAIT, 2, Behind, /*IsStored=*/false, EndOfBody}};
  const SyncList Create = {makingThreads(done({MEMLODE_SYNC_CREATE, 0, Behind}, If::Zero))};
  const SyncList Start = {makingThreads({MEMLODE_SYNC_CREATE, 0, Behind})};
  const SyncList Join = {{MEMLODE_SYNC_JOIN, 0, Behind}};
  const SyncList JoinStored = {{MEMLODE_SYNC_JOIN, 0, Behind, /*IsStored=*/true}};
  static const StringMap<SyncList> Known = {
      {"pthread_mutex_lock", Lock},
      {"pthread_rwlock_rdlock", Lock},
      {"pthread_rwlock_wrlock", Lock},
      {"pthread_spin_lock", Lock},
      {"mtx_lock", Lock},
      {"omp_set_lock", Lock},
      {"_ZNSt3__15mutex4lockEv", Lock},
      {"_ZNSt3__115recursive_mutex4lockEv", Lock},
      {"pthread_mutex_trylock", TryLock},
      {"pthread_mutex_timedlock", TryLock},
      {"pthread_mutex_clocklock", TryLock},
      {"pthread_rwlock_tryrdlock", TryLock},
      {"pthread_rwlock_trywrlock", TryLock},
      {"pthread_rwlock_timedrdlock", TryLock},
      {"pthread_rwlock_timedwrlock", TryLock},
      {"pthread_rwlock_clockrdlock", TryLock},
      {"pthread_rwlock_clockwrlock", TryLock},
      {"pthread_spin_trylock", TryLock},
      {"mtx_trylock", TryLock},
      {"mtx_timedlock", TryLock},
      {"omp_test_lock", TryLockTrue},
      {"_ZNSt3__15mutex8try_lockEv", TryLockTrue},
      {"_ZNSt3__115recursive_mutex8try_lockEv", TryLockTrue},
      {"__kmpc_fork_call", Fork},
      {"__kmpc_barrier", Meet},
      {"__kmpc_critical", {{MEMLODE_SYNC_LOCK, 2, Behind}}},
      {"__kmpc_critical_with_hint", {{MEMLODE_SYNC_LOCK, 2, Behind}}},
      {"__kmpc_end_critical", {{MEMLODE_SYNC_UNLOCK, 2, InFront}}},
      {"__kmpc_reduce", {{MEMLODE_SYNC_LOCK, 6, Behind}}},
      {"__kmpc_reduce_nowait", {{MEMLODE_SYNC_LOCK, 6, Behind}}},
      {"__kmpc_end_reduce", {{MEMLODE_SYNC_UNLOCK, 2, InFront}}},
      {"__kmpc_end_reduce_nowait", {{MEMLODE_SYNC_UNLOCK, 2, InFront}}},
      {"pthread_mutex_unlock", Unlock},
      {"pthread_rwlock_unlock", Unlock},
      {"pthread_spin_unlock", Unlock},
      {"mtx_unlock", Unlock},
      {"omp_unset_lock", Unlock},
      {"_ZNSt3__15mutex6unlockEv", Unlock},
      {"_ZNSt3__115recursive_mutex6unlockEv", Unlock},
      {"sem_wait", Wait},
      {"sem_trywait", TryWait},
      {"sem_timedwait", TryWait},
      {"sem_clockwait", TryWait},
      {"sem_post", Signal},
      {"pthread_cond_signal", Signal},
      {"pthread_cond_broadcast", Signal},
      {"cnd_signal", Signal},
      {"cnd_broadcast", Signal},
      {"_ZNSt18condition_variable10notify_oneEv", Signal},
      {"_ZNSt18condition_variable10notify_allEv", Signal},
      {"_ZNSt3__118condition_variable10notify_oneEv", Signal},
      {"_ZNSt3__118condition_variable10notify_allEv", Signal},
      {"pthread_cond_wait", WaitUnlocked},
      {"pthread_cond_timedwait", TimedWaitUnlocked},
      {"pthread_cond_clockwait", TimedWaitUnlocked},
      {"cnd_wait", WaitUnlocked},
      {"cnd_timedwait", WaitUnlocked},
      {"pthread_barrier_wait", Meet},
      {"pthread_create", Create},
      {"thrd_create", Create},
      {"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE", Start},
      {"pthread_join", Join},
      {"thrd_join", Join},
      {"_ZNSt6thread4joinEv", JoinStored},
      {"_ZNSt3__16thread4joinEv", JoinStored},
  };
  return Known;
}

/// Bytes from the beginning of the data that the threads of a scope of Rust's library share to
/// their number. The last thread sets it to 0, and the scope's end waits for that.
constexpr int64_t RunningThreads = 8;

/// Finds the effect on the order of threads of a function of Rust's library, which is compiled beforehand.
static SyncList rustSyncs(const Function &Callee) {
  const StringRef Name = Callee.getName();
  // Demangling takes long, and few names pass.
  if (!Name.contains("3std") || !(Name.contains("6Thread") || Name.contains("9ScopeData")))
    return {};
  std::string Plain = demangle(Name);
  StringRef Path = Plain;
  if (size_t Hash = Path.rfind("::h"); Hash != StringRef::npos && Path.size() - Hash == 19)
    Path = Path.take_front(Hash);
  if (Path.ends_with("::ScopeData>::decrement_num_running_threads") ||
      Path.ends_with("::ScopeData::decrement_num_running_threads"))
    return {{MEMLODE_SYNC_SIGNAL, 0, /*IsBehind=*/false, /*IsStored=*/false, RunningThreads}};
  if (!Path.contains("std::sys::") || !Path.contains("::unix::"))
    return {};
  if (Path.ends_with("Thread>::join") || Path.ends_with("Thread::join"))
    return {{MEMLODE_SYNC_JOIN, 0, /*IsBehind=*/true}};
  const auto *Result = dyn_cast<StructType>(Callee.getReturnType());
  if ((Path.ends_with("Thread>::new") || Path.ends_with("Thread::new")) && Result &&
      Result->getNumElements() == 2)
    return {makingThreads(
        {MEMLODE_SYNC_CREATE, 0, /*IsBehind=*/true, /*IsStored=*/false, 0, /*IsReturned=*/true})};
  return {};
}

SmallVector<SyncCall, 3> syncsOf(const CallBase &Call) {
  const auto *Callee = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
  if (!Callee || Callee->isIntrinsic())
    return {};
  if (SyncList Found = rustSyncs(*Callee); !Found.empty())
    return Found;
  const auto Found = syncsByName().find(Callee->getName());
  const auto isGiven = [&](const SyncCall &S) { return S.Object < Call.arg_size(); };
  if (Found == syncsByName().end() || !all_of(Found->second, isGiven))
    return {};
  return Found->second;
}

bool waitsForOthers(const CallBase &Call) {
  const auto *Callee = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
  return Callee && !Callee->isIntrinsic() &&
         (isWaitingName(Callee->getName()) || isWaitingRustName(Callee->getName()));
}

bool isParallelBody(const Function &F) {
  return isForkedBody(F) || F.getName().starts_with(".omp_task_entry");
}

bool isForkedBody(const Function &F) { return F.getName().contains(".omp_outlined"); }

/// Without waiting, the counter could be read during an acquisition, and be smaller than the stamps
/// of the threads that were waited for.
Value *readCounter(IRBuilder<> &B, bool Waits) {
  const bool IsX86 = targetOf(*B.GetInsertBlock()->getModule()).isX86();
  auto *Type = FunctionType::get(B.getInt64Ty(), false);
  const std::string Wait = !Waits ? "" : IsX86 ? "lfence\n\t" : "dsb ishld\n\tisb\n\t";
  return B.CreateCall(IsX86 ? InlineAsm::get(Type, Wait + "rdtsc\n\tshlq $$32, %rdx\n\torq %rdx, %rax",
                                             "={rax},~{rdx},~{memory},~{dirflag},~{fpsr},~{flags}", true)
                            : InlineAsm::get(Type, Wait + "mrs $0, cntvct_el0", "=r,~{memory}", true));
}

Value *emitStamp(Instruction *Before, bool Waits) {
  IRBuilder<> B(Before);
  Module &M = *Before->getModule();
  // Relaxed is enough: whoever made the others known did so before what was waited for.
  LoadInst *Others =
      B.CreateAlignedLoad(B.getInt32Ty(), M.getOrInsertGlobal("__memlode_others", B.getInt32Ty()), Align(4));
  Others->setAtomic(AtomicOrdering::Monotonic);
  BasicBlock *Alone = B.GetInsertBlock();
  Instruction *Together = SplitBlockAndInsertIfThen(B.CreateIsNotNull(Others), Before, /*Unreachable=*/false);
  B.SetInsertPoint(Together);
  Value *Counter = readCounter(B, Waits);
  B.SetInsertPoint(Before);
  PHINode *Stamp = B.CreatePHI(B.getInt64Ty(), 2);
  Stamp->addIncoming(B.getInt64(1), Alone);
  Stamp->addIncoming(Counter, Together->getParent());
  return Stamp;
}

} // namespace memlode
