//===- WaitingLoops.cpp ---------------------------------------------------===//

#include "plan/WaitingLoops.h"

#include "LlvmCompat.h"
#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumWaitingLoops, "Loops that wait for another thread");

namespace memlode {

namespace {

/// Returns whether a loop's end may depend on \p I: it reads what others change, or takes it if it
/// can.
bool mayPoll(const Instruction &I) {
  if (const auto *Load = dyn_cast<LoadInst>(&I))
    return Load->isVolatile() || Load->isAtomic();
  if (const auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return Update->getOperation() == AtomicRMWInst::Xchg || Update->getOperation() == AtomicRMWInst::Or;
  return isa<AtomicCmpXchgInst>(I);
}

/// Returns whether \p Call asks the kernel to wait for memory to change, or to wake a waiting
/// thread.
bool isFutex(const CallBase &Call, StringRef Name) {
  if (Name != "syscall" || Call.arg_size() == 0)
    return false;
  const auto *Number = dyn_cast<ConstantInt>(Call.getArgOperand(0));
  const bool IsArm = targetOf(*Call.getModule()).isAArch64();
  return Number && Number->equalsInt(IsArm ? 98 : 202);
}

/// Returns whether \p Call does nothing but let time pass.
bool letsTimePass(const CallBase &Call) {
  if (const auto *II = dyn_cast<IntrinsicInst>(&Call))
    return II->getIntrinsicID() != Intrinsic::memcpy && II->getIntrinsicID() != Intrinsic::memset &&
           II->getIntrinsicID() != Intrinsic::memmove;
  if (Call.isInlineAsm())
    return true; // accesses of its operands are found, and no loop may have others
  static const StringSet<> Names = {"sched_yield", "pthread_yield", "thrd_yield",     "usleep",
                                    "nanosleep",   "thrd_sleep",    "clock_nanosleep"};
  const auto *Callee = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
  if (!Callee)
    return false;
  // Rust's has no name of C.
  return Names.contains(Callee->getName()) || Callee->getName().contains("thread9yield_now") ||
         isFutex(Call, Callee->getName());
}

/// A loop, and the memory that it looks at.
class Candidate {
public:
  Candidate(const Loop &L, const Finder &Accesses) : L(L), Accesses(Accesses) {}

  /// Returns whether it waits and does nothing else.
  bool waits() {
    for (BasicBlock *B : L.blocks())
      for (Instruction &I : *B)
        if (!looks(I))
          return false;
    return any_of(Looks, [&](const Instruction *I) { return mayPoll(*I) && decides(*I); });
  }

  ArrayRef<const Instruction *> looksAt() const { return Looks; }

private:
  /// Returns whether \p I does no more than look.
  bool looks(Instruction &I) {
    if (const auto *Call = dyn_cast<CallBase>(&I); Call && !letsTimePass(*Call))
      return false;
    for (const Access &A : Accesses.find(I).Accesses) {
      const bool Changes = A.Kind != MEMLODE_KIND_LOAD && !mayPoll(I) && !keepsWhatIsSeen(I);
      if (Changes || A.Is != Access::Shape::Plain || !L.isLoopInvariant(A.Pointer))
        return false;
      Looks.push_back(&I);
    }
    return true;
  }

  /// Returns whether \p I stores the value that the loop has just seen, or that it never changes:
  /// where two iterations see the same, the second store changes nothing. A count of iterations is
  /// not stored this way.
  bool keepsWhatIsSeen(const Instruction &I) const {
    const auto *Store = dyn_cast<StoreInst>(&I);
    if (!Store || Store->isAtomic() || Store->isVolatile())
      return false;
    SmallPtrSet<const Value *, 8> Seen;
    SmallVector<const Value *, 8> Pending{Store->getValueOperand()};
    while (!Pending.empty()) {
      const Value *V = Pending.pop_back_val();
      const auto *By = dyn_cast<Instruction>(V);
      if (!By || !L.contains(By) || !Seen.insert(V).second || mayPoll(*By))
        continue;
      // What is loaded may be what an earlier iteration left.
      if (isa<PHINode>(By) || By->mayReadOrWriteMemory() || isa<CallBase>(By))
        return false;
      Pending.append(By->op_begin(), By->op_end());
    }
    return true;
  }

  /// Returns whether the loop is left because of the value that \p From saw, and no other iteration
  /// keeps that value. The value of a failed exchange may be kept: it has changed nothing.
  bool decides(const Instruction &From) const {
    SmallPtrSet<const Value *, 16> Seen;
    SmallVector<const Instruction *, 16> Pending{&From};
    bool Leaves = false;
    while (!Pending.empty()) {
      const Instruction *I = Pending.pop_back_val();
      if (!L.contains(I) || !Seen.insert(I).second)
        continue;
      if (isa<PHINode>(I) && I->getParent() == L.getHeader()) {
        if (isa<LoadInst>(From))
          return false;
        continue;
      }
      Leaves |= I->isTerminator() && L.isLoopExiting(I->getParent());
      for (const User *U : I->users())
        if (const auto *By = dyn_cast<Instruction>(U))
          Pending.push_back(By);
    }
    return Leaves;
  }

  const Loop &L;
  const Finder &Accesses;
  SmallVector<const Instruction *, 4> Looks;
};

/// The looks in front of \p L that are copies of those in it: a loop whose first look is outside has been
/// rotated.
SmallVector<const Instruction *, 2> firstLooks(const Loop &L, ArrayRef<const Instruction *> Looks) {
  SmallVector<const Instruction *, 2> Found;
  const BasicBlock *Guard = L.getLoopPredecessor();
  if (Guard && Guard->getTerminator()->getNumSuccessors() < 2)
    Guard = Guard->getSinglePredecessor();
  if (!Guard || L.contains(Guard) || Guard->getTerminator()->getNumSuccessors() < 2)
    return Found;
  for (const Instruction &I : *Guard)
    if (mayPoll(I) && any_of(Looks, [&](const Instruction *Look) { return Look->isIdenticalTo(&I); }))
      Found.push_back(&I);
  return Found;
}

/// Returns whether something other than \p Looks is recorded between two runs of \p L in its
/// parent, so that the runs can be distinguished.
bool isToldApart(const Loop &L, const Finder &Accesses, const DominatorTree &DT,
                 ArrayRef<const Instruction *> Looks) {
  const Loop *Outer = L.getParentLoop();
  return !Outer || any_of(Outer->blocks(), [&](BasicBlock *B) {
    const bool Always =
        DT.dominates(B, L.getHeader()) || (Outer->getLoopLatch() && DT.dominates(B, Outer->getLoopLatch()));
    return Always && !L.contains(B) && any_of(*B, [&](Instruction &I) {
             return !is_contained(Looks, &I) && !Accesses.find(I).Accesses.empty();
           });
  });
}

/// The variable, or member, to which \p Pointer leads, as far as the code of \p I shows it; null if
/// it does not.
const void *placeOf(const Instruction &I, const Value *Pointer) {
  if (const auto *Variable = dyn_cast<GlobalVariable>(getUnderlyingObject(Pointer)))
    return Variable;
  return I.getMetadata(LLVMContext::MD_tbaa);
}

} // namespace

Polls findPolls(Function &F, const Finder &Accesses, FunctionAnalysisManager &FAM) {
  Polls Found;
  if (none_of(instructions(F), mayPoll))
    return Found;
  const auto &DT = FAM.getResult<DominatorTreeAnalysis>(F);
  SmallPtrSet<const Loop *, 4> Waiting;
  for (const Loop *L : FAM.getResult<LoopAnalysis>(F).getLoopsInPreorder()) {
    // A loop inside one that waits is part of its iterations.
    if (Waiting.contains(L->getParentLoop())) {
      Waiting.insert(L);
      continue;
    }
    Candidate Here(*L, Accesses);
    if (!Here.waits())
      continue;
    const auto First = firstLooks(*L, Here.looksAt());
    if (!isToldApart(*L, Accesses, DT, First))
      continue;
    ++NumWaitingLoops;
    Waiting.insert(L);
    Found.insert(Here.looksAt().begin(), Here.looksAt().end());
    Found.insert(First.begin(), First.end());
  }
  return Found;
}

bool acquiresByWaiting(const Instruction &I) {
  const auto *Load = dyn_cast<LoadInst>(&I);
  return Load && (Load->isVolatile() || Load->isAtomic()) && !isAcquireOrStronger(Load->getOrdering()) &&
         (!Load->isAtomic() || Load->getSyncScopeID() != SyncScope::SingleThread);
}

void AwaitedMemory::add(const Polls &Looks) {
  for (const Instruction *I : Looks)
    if (acquiresByWaiting(*I))
      if (const void *Place = placeOf(*I, cast<LoadInst>(I)->getPointerOperand()))
        Places.insert(Place);
}

Value *AwaitedMemory::releasedBy(Instruction &I) const {
  auto *Store = dyn_cast<StoreInst>(&I);
  if (!Store || !(Store->isVolatile() || Store->isAtomic()) || isReleaseOrStronger(Store->getOrdering()) ||
      (Store->isAtomic() && Store->getSyncScopeID() == SyncScope::SingleThread))
    return nullptr;
  return Places.contains(placeOf(I, Store->getPointerOperand())) ? Store->getPointerOperand() : nullptr;
}

} // namespace memlode
