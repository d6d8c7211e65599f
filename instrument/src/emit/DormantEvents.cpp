//===- DormantEvents.cpp ---------------------------------------------------===//

#include "emit/DormantEvents.h"

#include "memlode_format.h"
#include "sides/DormantFunctions.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

static MDNode *unlikely(Function &F) { return MDBuilder(F.getContext()).createUnlikelyBranchWeights(); }

void DormantEvents::whileDormant(CallBase &Call, const Op &O, unsigned Index) {
  const bool Ends = O.Code == MEMLODE_OP_FREE || O.Code == MEMLODE_OP_UNMAP;
  if (auto *Invoke = dyn_cast<InvokeInst>(&Call); Invoke && !Ends) {
    BasicBlock *Behind = Invoke->getNormalDest();
    if (!Behind->getSinglePredecessor())
      Behind = SplitEdge(Invoke->getParent(), Behind);
    Instruction *First = &*Behind->getFirstInsertionPt();
    IRBuilder<> B(First);
    B.SetCurrentDebugLocation(Call.getDebugLoc());
    return say(SplitBlockAndInsertIfThen(isWanted(B), First, /*Unreachable=*/false, unlikely(F)), Call, O,
               Index);
  }
  IRBuilder<> B(&Call);
  if (Ends)
    return say(SplitBlockAndInsertIfThen(isWanted(B), &Call, /*Unreachable=*/false, unlikely(F)), Call, O,
               Index);
  Instruction *Wanted, *Unwanted;
  SplitBlockAndInsertIfThenElse(isWanted(B), &Call, &Wanted, &Unwanted, unlikely(F));
  auto *Copy = cast<CallBase>(Call.clone());
  Copy->insertInto(Wanted->getParent(), Wanted->getIterator());
  BasicBlock *Joined = Call.getParent();
  if (!Call.use_empty()) {
    PHINode *Result = PHINode::Create(Call.getType(), 2, "", Joined->begin());
    Call.replaceAllUsesWith(Result);
    Joint[&Call] = Result;
    Result->addIncoming(Copy, Wanted->getParent());
    Result->addIncoming(&Call, Unwanted->getParent());
    Result->setDebugLoc(Call.getDebugLoc());
  }
  Call.moveBefore(*Unwanted->getParent(), Unwanted->getIterator());
  cast<CallInst>(Copy)->setTailCall(false);
  say(Wanted, *Copy, O, Index, &Call);
}

Value *DormantEvents::isWanted(IRBuilder<> &B) {
  constexpr uint32_t Never = MEMLODE_OFF_NOBODY | MEMLODE_OFF_OVER;
  return B.CreateIsNull(B.CreateAnd(loadDormant(B), Never));
}

void DormantEvents::say(Instruction *Before, CallBase &Call, const Op &O, unsigned Index, Value *Planned) {
  IRBuilder<> B(Before);
  B.SetCurrentDebugLocation(Call.getDebugLoc());
  SmallVector<Value *, 4> Arguments = {B.CreatePtrToInt(Stored.anchor(B, Index), B.getInt64Ty())};
  for (Word W : O.Words) {
    for (Value **Operand : {&W.A, &W.B})
      if (Planned && *Operand == Planned)
        *Operand = &Call;
      else if (Value *Result = Joint.lookup(*Operand))
        *Operand = Result;
    Value *Computed = Stored.word(B, W);
    Arguments.push_back(Computed->getType()->isPointerTy() ? B.CreatePtrToInt(Computed, B.getInt64Ty())
                                                           : Computed);
  }
  const SmallVector<Type *, 4> Types(Arguments.size(), B.getInt64Ty());
  FunctionCallee Callee = M.getOrInsertFunction(("__memlode_dormant_" + Twine(Arguments.size() - 1)).str(),
                                                FunctionType::get(B.getVoidTy(), Types, false));
  auto *Said = cast<Function>(Callee.getCallee());
  Said->addFnAttr(Attribute::NoUnwind);
  Said->addFnAttr(Attribute::Cold);
  B.CreateCall(Callee, Arguments);
}

} // namespace memlode
