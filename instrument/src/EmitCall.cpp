//===- EmitCall.cpp - the yardstick: one call an access -------------------===//

#include "Emit.h"

#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

void emitCalls(Function &F, const Plan &P, Image &Into) {
  // Each access becomes a segment of its own, so that it has an anchor of its own.
  std::vector<Segment> Single;
  for (const Segment &S : P.Segments)
    for (const Op &O : S.Ops)
      if (O.Address) {
        Single.emplace_back();
        Single.back().Ops.push_back(O);
      }
  if (Single.empty())
    return;

  GlobalVariable *Anchors = Into.anchors(F, Single);
  Type *Int64 = Type::getInt64Ty(F.getContext());
  FunctionCallee Callee = F.getParent()->getOrInsertFunction("__memlode_call_access",
                                                             Type::getVoidTy(F.getContext()), Int64, Int64);
  for (unsigned I = 0; I < Single.size(); ++I) {
    const Op &O = Single[I].Ops.front();
    IRBuilder<> B(O.Before);
    Constant *Position[] = {B.getInt64(0), B.getInt64(I)};
    Constant *Anchor = ConstantExpr::getInBoundsGetElementPtr(Anchors->getValueType(), Anchors, Position);
    B.CreateCall(Callee, {B.CreatePtrToInt(Anchor, Int64), B.CreatePtrToInt(O.Address, Int64)});
  }
}

} // namespace memlode
