//===- AddressParts.cpp ---------------------------------------------------===//
#include "names/AddressParts.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxAddressDepth = 6;

/// The constant in \p V or in every lane of it.
const ConstantInt *constantIn(const Value *V) {
  if (auto *K = dyn_cast<ConstantInt>(V))
    return K;
  auto *C = dyn_cast<Constant>(V);
  return C && C->getType()->isVectorTy() ? dyn_cast_or_null<ConstantInt>(C->getSplatValue()) : nullptr;
}

void addStride(AddressParts &Parts, uint64_t Stride) {
  if (Stride && !is_contained(Parts.Strides, Stride))
    Parts.Strides.push_back(Stride);
}

/// Splits `Scale · Index`: indices are often `i · 3 + 1` before they are scaled.
void addIndex(const Value *Index, int64_t Scale, AddressParts &Parts, unsigned Depth) {
  // Offsets that no object has are as good as unknown; small factors keep every sum below within 64 bits.
  constexpr int64_t TooFar = int64_t(1) << 28;
  if (Scale >= TooFar || Scale <= -TooFar)
    return addStride(Parts, 1);
  if (auto *K = constantIn(Index)) {
    if (K->getValue().getSignificantBits() <= 32)
      Parts.Offset += Scale * K->getSExtValue();
    else
      addStride(Parts, 1);
    return;
  }
  auto *O = dyn_cast<Operator>(Index);
  if (!O || Depth == MaxAddressDepth)
    return addStride(Parts, std::abs(Scale));
  const Value *Left = O->getNumOperands() ? O->getOperand(0) : nullptr;
  const ConstantInt *K = O->getNumOperands() == 2 ? constantIn(O->getOperand(1)) : nullptr;
  if (K && K->getValue().getSignificantBits() > 28)
    K = nullptr;
  switch (O->getOpcode()) {
  case Instruction::SExt:
  case Instruction::ZExt:
  case Instruction::Freeze:
    return addIndex(Left, Scale, Parts, Depth + 1);
  case Instruction::Shl:
    if (K && K->getZExtValue() < 28)
      return addIndex(Left, Scale << K->getZExtValue(), Parts, Depth + 1);
    break;
  case Instruction::Mul:
    if (K)
      return addIndex(Left, Scale * K->getSExtValue(), Parts, Depth + 1);
    break;
  case Instruction::Or:
    if (auto *D = dyn_cast<PossiblyDisjointInst>(O); !D || !D->isDisjoint())
      break;
    [[fallthrough]];
  case Instruction::Add:
    addIndex(Left, Scale, Parts, Depth + 1);
    return addIndex(O->getOperand(1), Scale, Parts, Depth + 1);
  case Instruction::Sub:
    addIndex(Left, Scale, Parts, Depth + 1);
    return addIndex(O->getOperand(1), -Scale, Parts, Depth + 1);
  case Instruction::And:
    // A mask with low zeros is a multiple.
    if (K && !K->isZero() && K->getValue().countr_zero() < 16)
      return addStride(Parts, std::abs(Scale) << K->getValue().countr_zero());
    break;
  case Instruction::Select: {
    auto *Yes = constantIn(O->getOperand(1)), *No = constantIn(O->getOperand(2));
    if (!Yes || !No || !Parts.Choices.empty() || Yes->getValue().getSignificantBits() > 32 ||
        No->getValue().getSignificantBits() > 32)
      break;
    Parts.Offset += Scale * Yes->getSExtValue();
    Parts.Choices.push_back(Scale * (No->getSExtValue() - Yes->getSExtValue()));
    return;
  }
  case Instruction::PHI: {
    // An induction variable moves by its constant step.
    auto *N = cast<PHINode>(O);
    if (N->getNumIncomingValues() != 2)
      break;
    for (unsigned I = 0; I != 2; ++I) {
      auto *Start = constantIn(N->getIncomingValue(1 - I));
      auto *Next = dyn_cast<BinaryOperator>(N->getIncomingValue(I));
      auto *Step = Next && Next->getOpcode() == Instruction::Add && Next->getOperand(0) == N
                       ? constantIn(Next->getOperand(1))
                       : nullptr;
      if (!Start || !Step || Start->getValue().getSignificantBits() > 32 ||
          Step->getValue().getSignificantBits() > 32)
        continue;
      Parts.Offset += Scale * Start->getSExtValue();
      return addStride(Parts, std::abs(Scale * Step->getSExtValue()));
    }
    break;
  }
  default:
    break;
  }
  addStride(Parts, std::abs(Scale));
}

} // namespace

AddressParts addressParts(const GEPOperator &G, const DataLayout &Layout, bool AsWritten) {
  AddressParts Parts;
  for (gep_type_iterator It = gep_type_begin(&G), End = gep_type_end(&G); It != End; ++It) {
    const Value *Index = It.getOperand();
    if (StructType *S = It.getStructTypeOrNull()) {
      if (auto *K = constantIn(Index))
        Parts.Offset += Layout.getStructLayout(S)->getElementOffset(K->getZExtValue());
      continue;
    }
    TypeSize Step = It.getSequentialElementStride(Layout);
    if (!Step.isScalable())
      addIndex(Index, static_cast<int64_t>(Step.getFixedValue()), Parts, AsWritten ? MaxAddressDepth : 0);
  }
  return Parts;
}

} // namespace memlode
