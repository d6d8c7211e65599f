//===- Prepare.cpp - the form of a function that planning expects ---------===//

#include "plan/Segments.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

Instruction *lastEffect(const Instruction &Before) {
  Instruction *I = const_cast<Instruction *>(Before.getPrevNode());
  while (I && (I->isDebugOrPseudoInst() || I->isLifetimeStartOrEnd()))
    I = I->getPrevNode();
  return I;
}

/// The entry block will be split at tests for room; an alloca behind the split would no longer be a slot of
/// the frame.
static bool gatherAllocas(Function &F) {
  BasicBlock &Entry = F.getEntryBlock();
  SmallVector<AllocaInst *, 8> Late;
  bool InFront = true;
  for (Instruction &I : Entry) {
    auto *Slot = dyn_cast<AllocaInst>(&I);
    const bool Static = Slot && Slot->isStaticAlloca();
    if (Static && !InFront)
      Late.push_back(Slot);
    InFront &= Static;
  }
  for (AllocaInst *Slot : Late)
    Slot->moveBefore(Entry, Entry.getFirstInsertionPt());
  return !Late.empty();
}

/// Code behind an invoke has to stand on its normal edge.
static bool splitInvokeEdges(Function &F) {
  SmallVector<InvokeInst *, 8> Shared;
  for (BasicBlock &B : F)
    if (auto *Invoke = dyn_cast<InvokeInst>(B.getTerminator()))
      if (!Invoke->getNormalDest()->getSinglePredecessor())
        Shared.push_back(Invoke);
  for (InvokeInst *Invoke : Shared)
    SplitEdge(Invoke->getParent(), Invoke->getNormalDest());
  return !Shared.empty();
}

/// The call at the end of \p B that the code generator could turn into a jump if a return of \p Returned
/// followed.
static CallInst *tailCallTo(BasicBlock &B, const BasicBlock &To, const Value *Returned) {
  auto *Call = dyn_cast_or_null<CallInst>(lastEffect(*B.getTerminator()));
  if (!Call || !Call->isTailCall() || isa<IntrinsicInst>(Call))
    return nullptr;
  if (!Returned)
    return Call;
  const auto *Phi = dyn_cast<PHINode>(Returned);
  return Phi && Phi->getParent() == &To && Phi->getIncomingValueForBlock(&B) == Call ? Call : nullptr;
}

/// A shared return hides that the calls that lead to it are in tail position. The code generator would copy
/// the return to them, but no longer does so once the block records the exit.
static bool copyReturns(Function &F) {
  bool Changed = false;
  for (BasicBlock &B : make_early_inc_range(F)) {
    auto *Return = dyn_cast<ReturnInst>(B.getTerminator());
    if (!Return || &*B.getFirstNonPHIOrDbg() != Return)
      continue;
    SmallVector<BasicBlock *, 8> Preds(predecessors(&B));
    for (BasicBlock *Pred : Preds) {
      auto *Jump = dyn_cast<BranchInst>(Pred->getTerminator());
      if (!Jump || !Jump->isUnconditional() || Pred == &B || !tailCallTo(*Pred, B, Return->getReturnValue()))
        continue;
      FoldReturnIntoUncondBranch(Return, &B, Pred);
      Changed = true;
    }
    if (pred_empty(&B) && &B != &F.getEntryBlock())
      DeleteDeadBlock(&B);
  }
  return Changed;
}

/// The inliner marks a call that it will not inline again, where functions of a cycle would grow
/// without end. If `flatten` demands inlining of the call, LLVM's verifier reports the
/// contradiction as an error.
static bool settleDemands(Function &F) {
  bool Changed = false;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || !Call->getAttributes().hasFnAttr(Attribute::NoInline) ||
        !Call->getAttributes().hasFnAttr(Attribute::AlwaysInline))
      continue;
    Call->removeFnAttr(Attribute::AlwaysInline);
    Changed = true;
  }
  return Changed;
}

/// Writes loads of offsets out, as the code generator does: the pointer itself is not the address
/// that is read.
static bool openRelativeLoads(Function &F) {
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *II = dyn_cast<IntrinsicInst>(&I);
    if (!II || II->getIntrinsicID() != Intrinsic::load_relative)
      continue;
    IRBuilder<> B(II);
    Value *Base = II->getArgOperand(0);
    Value *Offset = B.CreateAlignedLoad(B.getInt32Ty(), B.CreatePtrAdd(Base, II->getArgOperand(1)), Align(4));
    II->replaceAllUsesWith(B.CreatePtrAdd(Base, Offset));
    II->eraseFromParent();
    Changed = true;
  }
  return Changed;
}

/// Clang inserts a `_Bool` into a vector of bits as the byte that it is in memory, which LLVM's verifier
/// takes for an error; the code generator cuts it.
static bool cutInsertedBits(Function &F) {
  bool Changed = false;
  for (Instruction &I : instructions(F)) {
    auto *Insert = dyn_cast<InsertElementInst>(&I);
    if (!Insert)
      continue;
    Value *What = Insert->getOperand(1);
    Type *Element = Insert->getType()->getElementType();
    if (What->getType() == Element || !What->getType()->isIntegerTy() || !Element->isIntegerTy())
      continue;
    Insert->setOperand(1, IRBuilder<>(Insert).CreateZExtOrTrunc(What, Element));
    Changed = true;
  }
  return Changed;
}

bool prepare(Function &F) {
  bool Changed = gatherAllocas(F);
  Changed |= openRelativeLoads(F);
  Changed |= cutInsertedBits(F);
  Changed |= splitInvokeEdges(F);
  Changed |= copyReturns(F);
  Changed |= settleDemands(F);
  return Changed;
}

} // namespace memlode
