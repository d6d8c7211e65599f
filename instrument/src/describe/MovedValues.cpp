//===- MovedValues.cpp ----------------------------------------------------===//

#include "describe/MovedValues.h"

#include "LlvmCompat.h"

#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;

namespace memlode {

/// Longer values are left out: they would not fit a segment with others.
static constexpr uint64_t MostBytes = 512;

static Type *typeOf(Instruction &I) {
  if (auto *Swap = dyn_cast<AtomicCmpXchgInst>(&I))
    return Swap->getNewValOperand()->getType();
  const Value *Moved = movedValue(I);
  return Moved ? Moved->getType() : nullptr;
}

Type *movedType(const Access &A, const DataLayout &DL) {
  if (A.Is == Access::Shape::Range || A.Is == Access::Shape::Compressed)
    return nullptr;
  Type *Found = typeOf(*A.I);
  // A vector of bits is packed in a register, and lies in memory as the access says.
  const uint64_t Bytes = A.Bytes * std::max(A.Lanes, 1u);
  return Found && Bytes <= MostBytes && DL.getTypeStoreSize(Found) == Bytes ? Found : nullptr;
}

Value *movedValue(Instruction &I) {
  if (isa<LoadInst, AtomicRMWInst>(I)) // an update that only reads (Finder.cpp)
    return &I;
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return Store->getValueOperand();
  auto *II = dyn_cast<IntrinsicInst>(&I);
  switch (II ? II->getIntrinsicID() : Intrinsic::not_intrinsic) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather:
    return II;
  case Intrinsic::masked_store:
  case Intrinsic::masked_scatter:
    return maskedOperands(*II).Stored;
  default:
    return nullptr;
  }
}

Value *valueBefore(IRBuilder<> &B, Instruction &I) {
  return isa<AtomicCmpXchgInst>(I) ? B.CreateExtractValue(&I, 0) : static_cast<Value *>(&I);
}

Value *valueAfter(IRBuilder<> &B, Instruction &I) {
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return buildAtomicRMWValue(Update->getOperation(), B, Update, Update->getValOperand());
  auto &Swap = cast<AtomicCmpXchgInst>(I);
  return B.CreateSelect(B.CreateExtractValue(&Swap, 1), Swap.getNewValOperand(), valueBefore(B, Swap));
}

} // namespace memlode
