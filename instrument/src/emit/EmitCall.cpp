//===- EmitCall.cpp - the yardstick: one call an access -------------------===//

#include "emit/Emit.h"

#include "memlode_format.h"

#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

/// Returns the extent of \p O, besides address and site: a length, or the mask of the lanes.
static Value *extent(IRBuilder<> &B, const Op &O) {
  if (O.Length)
    return B.CreateZExtOrTrunc(O.Length, B.getInt64Ty());
  for (const Word &W : O.Words) {
    if (W.Computed != Word::How::Mask && W.Computed != Word::How::MaskBytes)
      continue;
    const unsigned Lanes = cast<FixedVectorType>(W.A->getType())->getNumElements();
    Value *Bits = B.CreateZExt(B.CreateBitCast(W.A, B.getIntNTy(Lanes)), B.getInt64Ty());
    if (W.Computed == Word::How::Mask)
      return Bits;
    return B.CreateMul(B.CreateUnaryIntrinsic(Intrinsic::ctpop, Bits), B.getInt64(W.Bytes));
  }
  return B.getInt64(0);
}

void emitCalls(Function &F, const Plan &P, Image &Into) {
  // Each access becomes a segment of its own, so that it has an anchor of its own.
  std::vector<Segment> Single;
  for (const Segment &S : P.Segments)
    for (const Op &O : S.Ops)
      if ((O.Address || O.Code == MEMLODE_OP_GATHER) && O.Code != MEMLODE_OP_SYNC) {
        Single.emplace_back();
        Single.back().Ops.push_back(O);
      }
  if (Single.empty())
    return;

  GlobalVariable *Anchors = Into.anchors(F, Single);
  Type *Int64 = Type::getInt64Ty(F.getContext());
  FunctionCallee Callee = F.getParent()->getOrInsertFunction(
      "__memlode_call_access", Type::getVoidTy(F.getContext()), Int64, Int64, Int64);
  for (unsigned I = 0; I < Single.size(); ++I) {
    const Op &O = Single[I].Ops.front();
    IRBuilder<> B(O.Before);
    Constant *Position[] = {B.getInt64(0), B.getInt64(I)};
    Constant *Anchor = ConstantExpr::getPtrToInt(
        ConstantExpr::getInBoundsGetElementPtr(Anchors->getValueType(), Anchors, Position), Int64);
    Value *Extent = extent(B, O);
    if (O.Address) {
      B.CreateCall(Callee, {Anchor, B.CreatePtrToInt(O.Address, Int64), Extent});
      continue;
    }
    // A lane that is masked out may hold anything.
    Value *Lanes = B.CreateFreeze(O.Words.front().A);
    for (unsigned Lane = 0; Lane < O.Words.front().count(); ++Lane)
      B.CreateCall(Callee, {Anchor, B.CreatePtrToInt(B.CreateExtractElement(Lanes, Lane), Int64), Extent});
  }
}

} // namespace memlode
