//===- Fortran.cpp --------------------------------------------------------===//
#include "Fortran.h"
#include "LlvmCompat.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr int64_t Bounds = 24;       ///< where the first dimension's words begin
constexpr int64_t Dimension = 3 * 8; ///< lower bound, extent, stride

} // namespace

bool isFortran(const Function &F) {
  const DISubprogram *SP = F.getSubprogram();
  return SP && SP->getUnit() && dwarf::isFortran(languageOf(*SP->getUnit()));
}

bool isDescriptor(const DICompositeType *A) {
  return A->getTag() == dwarf::DW_TAG_array_type && A->getRawDataLocation();
}

int64_t descriptorBytes(const DICompositeType *A) {
  return Bounds + Dimension * static_cast<int64_t>(A->getElements().size());
}

const DIType *descriptorPointer(const DICompositeType *A) {
  return DIDerivedType::get(A->getContext(), dwarf::DW_TAG_pointer_type, StringRef(), nullptr, 0, nullptr,
                            A->getBaseType(), uint64_t(64), 0, uint64_t(0), std::nullopt, std::nullopt,
                            DINode::FlagZero);
}

StringRef descriptorPart(int64_t Offset) {
  if (Offset < 8)
    return DescriptorData;
  if (Offset < Bounds)
    return "{kind}";
  constexpr StringLiteral Parts[] = {"{lower bound}", "{extent}", "{stride}"};
  return Parts[(Offset - Bounds) / 8 % 3];
}

const Value *copiedInto(const AllocaInst &Slot) {
  constexpr unsigned MaxUses = 64;
  const Value *From = nullptr;
  unsigned Seen = 0;
  for (const User *U : Slot.users()) {
    if (++Seen > MaxUses)
      return nullptr;
    const Value *Copied = nullptr;
    if (auto *Copy = dyn_cast<MemTransferInst>(U); Copy && Copy->getRawDest() == &Slot) {
      Copied = Copy->getRawSource();
    } else if (auto *S = dyn_cast<StoreInst>(U); S && S->getPointerOperand() == &Slot) {
      auto *L = dyn_cast<LoadInst>(S->getValueOperand());
      if (!L)
        return nullptr;
      Copied = L->getPointerOperand();
    }
    if (Copied && From && Copied != From)
      return nullptr;
    From = Copied ? Copied : From;
  }
  return From;
}

StringRef derivedTypeName(StringRef Mangled) {
  // What Fortran names is lower case; capital letters say what follows: M a module, F a procedure, T a type.
  if (!Mangled.consume_front("_Q"))
    return "";
  size_t At = Mangled.find_last_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return At == StringRef::npos || Mangled[At] != 'T' ? "" : Mangled.drop_front(At + 1);
}

} // namespace memlode
