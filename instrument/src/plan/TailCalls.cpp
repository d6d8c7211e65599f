//===- TailCalls.cpp ------------------------------------------------------===//

#include "plan/TailCalls.h"

#include "plan/Segments.h"

#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

/// True if an argument certainly lies on the stack: more integers and pointers than registers hold (System V
/// ABI for x86-64, 3.2.3), or a copy of a structure.
static bool passesOnStack(const CallInst &Call) {
  constexpr unsigned Registers = 6;
  unsigned Integers = 0;
  for (unsigned I = 0; I < Call.arg_size(); ++I) {
    const Type *T = Call.getArgOperand(I)->getType();
    Integers += T->isPointerTy() || T->isIntegerTy();
    if (Call.isByValArgument(I))
      return true;
  }
  return Integers > Registers;
}

/// True if no argument of \p F lies on the stack.
static bool hasRegistersAlone(const Function &F) {
  constexpr unsigned Least = 6; // whatever they are
  return !F.isVarArg() && F.arg_size() <= Least && none_of(F.args(), [](const Argument &A) {
    return A.hasByValAttr() || A.getType()->isX86_FP80Ty() || A.getType()->getPrimitiveSizeInBits() > 64 ||
           A.getType()->isAggregateType();
  });
}

/// False if the code generator cannot turn \p Call, in tail position, into a jump: \p F returns the address
/// of its result and the callee does not, or the callee's arguments need room that \p F was not given.
static bool mayBecomeJump(const CallInst &Call, const Function &F) {
  if (F.hasStructRetAttr()) {
    const auto Result = find_if(F.args(), [](const Argument &A) { return A.hasStructRetAttr(); });
    if (!Call.hasStructRetAttr() || !is_contained(Call.args(), &*Result))
      return false;
  }
  return !passesOnStack(Call) || !hasRegistersAlone(F);
}

Instruction *exitPoint(BasicBlock &B) {
  if (CallInst *Must = B.getTerminatingMustTailCall())
    return Must;
  auto *Return = dyn_cast<ReturnInst>(B.getTerminator());
  if (!Return)
    return nullptr;
  Instruction *Last = lastEffect(*Return);
  const auto *Call = dyn_cast_or_null<CallInst>(Last);
  if (!Call || !Call->isTailCall() || (Return->getReturnValue() && Return->getReturnValue() != Call) ||
      !mayBecomeJump(*Call, *B.getParent()))
    return Return;
  return Last;
}

} // namespace memlode
