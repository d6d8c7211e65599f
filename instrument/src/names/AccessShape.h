//===- AccessShape.h - how an instruction touches memory ------------------===//
#ifndef MEMLODE_INSTRUMENT_ACCESSSHAPE_H
#define MEMLODE_INSTRUMENT_ACCESSSHAPE_H

#include "names/AliasTag.h"
#include "names/MemberPath.h"
#include "names/TypeNames.h"

namespace memlode {

/// The facts about an access's object that the access itself shows, without following the pointer.
struct AccessShape {
  const llvm::Instruction *I = nullptr;
  uint64_t Bytes = 0;        ///< 0: not constant
  uint64_t ElementBytes = 0; ///< of one lane; 0: a block copy
  ValueKind Kind = ValueKind::Unknown;
  unsigned FirstBit = 0, Bits = 0; ///< of a bit-field's storage unit, when the code around shows them
  AliasTag Tag;
  const llvm::DICompositeType *TagRecord = nullptr;
  const llvm::Type *Value = nullptr; ///< what one lane is to LLVM; null for a block copy
};

/// \p Bytes is 0 when the length is not constant, or to take it from a load or store.
AccessShape shapeOf(const llvm::Instruction &I, uint64_t Bytes, TypeNames &Types);

} // namespace memlode
#endif
