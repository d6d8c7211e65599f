//===- AccessShape.cpp ----------------------------------------------------===//
#include "names/AccessShape.h"
#include "LlvmCompat.h"

#include "llvm/ADT/bit.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace memlode {

namespace {

/// The type of the value that moves, or null for copies and calls.
const Type *valueType(const Instruction &I) {
  if (auto *L = dyn_cast<LoadInst>(&I))
    return L->getType();
  if (auto *S = dyn_cast<StoreInst>(&I))
    return S->getValueOperand()->getType();
  if (auto *R = dyn_cast<AtomicRMWInst>(&I))
    return R->getValOperand()->getType();
  if (auto *X = dyn_cast<AtomicCmpXchgInst>(&I))
    return X->getCompareOperand()->getType();
  if (auto *II = dyn_cast<IntrinsicInst>(&I))
    switch (II->getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather:
    case Intrinsic::masked_expandload:
      return II->getType();
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
    case Intrinsic::masked_compressstore:
      return II->getArgOperand(0)->getType();
    default:
      break;
    }
  return nullptr;
}

/// The bits between the lowest and the highest one of a contiguous mask.
bool maskBits(const APInt &Mask, unsigned &First, unsigned &Count) {
  unsigned Low = 0, Length = 0;
  if (!Mask.isShiftedMask(Low, Length))
    return false;
  First = Low;
  Count = Length;
  return true;
}

/// Front ends read and write bit-fields through their storage unit and cut the field out with shifts and
/// masks.
void findBits(const Instruction &I, AccessShape &A) {
  auto *T = dyn_cast_or_null<IntegerType>(A.Value);
  if (!T || T->getBitWidth() > 64 || !A.Tag.Scalar.empty())
    return;
  unsigned Width = T->getBitWidth();
  const APInt *Mask, *Up, *Down;
  if (auto *S = dyn_cast<StoreInst>(&I)) {
    // (unit & ~field) | value
    const Value *V = S->getValueOperand();
    if (match(V, m_c_Or(m_And(m_Load(m_Specific(S->getPointerOperand())), m_APInt(Mask)), m_Value())) ||
        match(V, m_And(m_Load(m_Specific(S->getPointerOperand())), m_APInt(Mask))))
      maskBits(~*Mask, A.FirstBit, A.Bits);
    return;
  }
  if (!isa<LoadInst>(I) || !I.hasOneUse())
    return;
  const auto *U = dyn_cast<Instruction>(*I.user_begin());
  if (!U)
    return;
  if (match(U, m_And(m_Specific(&I), m_APInt(Mask)))) {
    // The first half of a write keeps everything but the field; a read keeps the field alone.
    bool Writes = any_of(U->users(), [&](const User *W) {
      const auto *Or = dyn_cast<BinaryOperator>(W);
      const User *Last = Or && Or->getOpcode() == Instruction::Or && Or->hasOneUse() ? *Or->user_begin() : W;
      auto *S = dyn_cast<StoreInst>(Last);
      return S && S->getPointerOperand() == cast<LoadInst>(I).getPointerOperand();
    });
    maskBits(Writes ? ~*Mask : *Mask, A.FirstBit, A.Bits);
  } else if (match(U, m_Shl(m_Specific(&I), m_APInt(Up))) && Up->ult(Width)) {
    if (U->hasOneUse() && match(*U->user_begin(), m_Shr(m_Specific(U), m_APInt(Down))) && Down->ult(Width) &&
        Down->uge(*Up)) {
      A.Bits = Width - Down->getZExtValue();
      A.FirstBit = Down->getZExtValue() - Up->getZExtValue();
    }
  } else if (match(U, m_Shr(m_Specific(&I), m_APInt(Down))) && Down->ult(Width)) {
    A.FirstBit = Down->getZExtValue();
    A.Bits = Width - A.FirstBit;
    if (U->hasOneUse() && match(*U->user_begin(), m_And(m_Specific(U), m_APInt(Mask))) && Mask->isMask())
      A.Bits = std::min(A.Bits, Mask->getActiveBits());
  }
}

} // namespace

AccessShape shapeOf(const Instruction &I, uint64_t Bytes, TypeNames &Types) {
  AccessShape A;
  A.I = &I;
  A.Bytes = Bytes;
  A.Tag = AliasTag::of(I);
  A.TagRecord = Types.byAliasName(A.Tag.Record);
  const Type *T = valueType(I);
  if (!T || !T->isSized())
    return A;
  const DataLayout &Layout = I.getModule()->getDataLayout();
  TypeSize Whole = Layout.getTypeStoreSize(const_cast<Type *>(T));
  if (!A.Bytes && !Whole.isScalable())
    A.Bytes = Whole.getFixedValue();
  A.Value = T->getScalarType();
  if (A.Value->isAggregateType())
    return A; // moved as a block
  A.ElementBytes = Layout.getTypeStoreSize(const_cast<Type *>(A.Value)).getFixedValue();
  A.Kind = A.Value->isPointerTy()         ? ValueKind::Pointer
           : A.Value->isFloatingPointTy() ? ValueKind::Float
                                          : ValueKind::Integer;
  findBits(I, A);
  return A;
}

} // namespace memlode
