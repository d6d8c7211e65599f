//===- Words.cpp ----------------------------------------------------------===//

#include "emit/Words.h"

#include "describe/MovedValues.h"
#include "find/LibcAccesses.h"
#include "memlode_format.h"
#include "names/Fortran.h"
#include "plan/SyncPoints.h"

#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

unsigned Words::words(IRBuilder<> &B, const Segment &S, Value *Start, unsigned Index) {
  unsigned Position = 0;
  store(B, anchor(B, Index), Start, Position);
  for (const Op &O : S.Ops) {
    B.SetInsertPoint(O.Before);
    op(B, O, Start, Position);
  }
  return Position;
}

Constant *Words::anchor(IRBuilder<> &B, unsigned Index) {
  Constant *Position[] = {B.getInt64(0), B.getInt64(Index)};
  return ConstantExpr::getInBoundsGetElementPtr(Anchors.getValueType(), &Anchors, Position);
}

Value *Words::slot(IRBuilder<> &B, Value *Start, unsigned Position) {
  return B.CreateConstInBoundsGEP1_64(Int64, Start, Position % Places);
}

void Words::store(IRBuilder<> &B, Value *What, Value *Start, unsigned &Position) {
  B.CreateAlignedStore(What, slot(B, Start, Position), Align(8));
  ++Position;
}

void Words::op(IRBuilder<> &B, const Op &O, Value *Start, unsigned &Position) {
  if (O.addressIsWord())
    store(B, O.Address, Start, Position);
  if (O.Length && O.LengthFrom == 0)
    store(B, integer(B, O.Length), Start, Position);
  for (const Word &W : O.Words) {
    if (W.Computed == Word::How::FirstStamp) {
      // The thread may act on what its maker does from now on before it records anything itself.
      B.CreateAlignedStore(B.getInt32(1), M.getOrInsertGlobal("__memlode_others", B.getInt32Ty()), Align(4))
          ->setAtomic(AtomicOrdering::Monotonic);
      store(B, readCounter(B, /*Waits=*/false), Start, Position);
      continue;
    }
    if (W.Computed == Word::How::Stamp || W.Computed == Word::How::LooseStamp) {
      Value *Stamp = emitStamp(O.Before, W.Computed == Word::How::Stamp);
      B.SetInsertPoint(O.Before);
      store(B, Stamp, Start, Position);
      continue;
    }
    if (Value *What = moved(B, W)) {
      B.CreateAlignedStore(What, slot(B, Start, Position), Align(8));
      Position += W.count();
      continue;
    }
    if (W.Computed != Word::How::Lanes) {
      store(B, word(B, W), Start, Position);
      continue;
    }
    // A lane that is masked out may hold anything, but always the same thing.
    B.CreateAlignedStore(B.CreateFreeze(W.A), slot(B, Start, Position), Align(8));
    Position += W.count();
  }
}

Value *Words::moved(IRBuilder<> &B, const Word &W) {
  switch (W.Computed) {
  case Word::How::Moved:
    return W.A;
  case Word::How::Before:
    return valueBefore(B, *cast<Instruction>(W.A));
  case Word::How::After:
    return valueAfter(B, *cast<Instruction>(W.A));
  default:
    return nullptr;
  }
}

Value *Words::storedIf(IRBuilder<> &B, Value *Condition, Value *From) {
  Instruction *Behind = &*B.GetInsertPoint();
  BasicBlock *Front = B.GetInsertBlock();
  Instruction *Holds = SplitBlockAndInsertIfThen(Condition, Behind, /*Unreachable=*/false);
  Value *Read = IRBuilder<>(Holds).CreateLoad(Pointer, From);
  B.SetInsertPoint(Behind);
  PHINode *Found = B.CreatePHI(Pointer, 2);
  Found->addIncoming(ConstantPointerNull::get(cast<PointerType>(Pointer)), Front);
  Found->addIncoming(Read, Holds->getParent());
  return Found;
}

Value *Words::integer(IRBuilder<> &B, Value *V) {
  return V->getType()->isPointerTy() ? V : B.CreateZExtOrTrunc(V, Int64);
}

Value *Words::bits(IRBuilder<> &B, Value *Mask) {
  const unsigned Lanes = cast<FixedVectorType>(Mask->getType())->getNumElements();
  return B.CreateZExtOrTrunc(B.CreateBitCast(Mask, B.getIntNTy(Lanes)), Int64);
}

Value *Words::word(IRBuilder<> &B, const Word &W) {
  Constant *Null = ConstantPointerNull::get(PointerType::getUnqual(F.getContext()));
  switch (W.Computed) {
  case Word::How::Value:
    return integer(B, W.A);
  case Word::How::Mask:
    return bits(B, W.A);
  case Word::How::MaskBytes:
    return B.CreateMul(B.CreateUnaryIntrinsic(Intrinsic::ctpop, bits(B, W.A)), B.getInt64(W.Bytes));
  case Word::How::Frame:
    return B.CreateIntrinsic(Intrinsic::addressofreturnaddress, {Pointer}, {});
  case Word::How::Product:
    return B.CreateMul(integer(B, W.A), integer(B, W.B));
  case Word::How::Mapped:
    return B.CreateSelect(B.CreateICmpEQ(W.A, ConstantExpr::getIntToPtr(B.getInt64(-1), Pointer)), Null, W.A);
  case Word::How::Stored:
    return B.CreateLoad(Pointer, W.A);
  case Word::How::StoredIfZero:
    return storedIf(B, B.CreateIsNull(W.B), W.A);
  case Word::How::Text:
    return B.CreateSelect(B.CreateIsNotNull(W.B), Null, W.A);
  case Word::How::TextBytes:
    return stringBytes(B, W.B, W.A);
  case Word::How::Described:
    return B.CreateCall(describedBytes(M), W.A);
  case Word::How::Lanes:
  case Word::How::Moved:
  case Word::How::Before:
  case Word::How::After:
  case Word::How::Stamp:
  case Word::How::LooseStamp:
  case Word::How::FirstStamp:
    break;
  }
  llvm_unreachable("some are stored at once, and a stamp is made where it is stored");
}

GlobalVariable *Words::unread() {
  constexpr StringRef Name = "memlode.unread";
  if (GlobalVariable *Made = M.getNamedGlobal(Name))
    return Made;
  Type *Bytes = ArrayType::get(Type::getInt8Ty(F.getContext()), Places * 8 + 4096);
  auto *Made =
      new GlobalVariable(M, Bytes, false, GlobalValue::LinkOnceODRLinkage, Constant::getNullValue(Bytes),
                         Name, nullptr, GlobalValue::InitialExecTLSModel);
  Made->setVisibility(GlobalValue::HiddenVisibility);
  Made->setAlignment(Align(64));
  return Made;
}

} // namespace memlode
