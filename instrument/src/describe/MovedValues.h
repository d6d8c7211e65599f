//===- MovedValues.h - the values that accesses move ----------------------===//
#ifndef MEMLODE_INSTRUMENT_MOVEDVALUES_H
#define MEMLODE_INSTRUMENT_MOVEDVALUES_H

#include "find/Finder.h"

#include "llvm/IR/IRBuilder.h"

namespace memlode {

/// The type that \p A loads or stores, with all lanes; for an update, the type in memory. Null if
/// the value is in no register (a range, the copy of a by-value argument), differs from its form in
/// memory, or is too long for a stream.
llvm::Type *movedType(const Access &A, const llvm::DataLayout &DL);

/// Returns the value that a load or store with a movedType() loads or stores.
llvm::Value *movedValue(llvm::Instruction &I);

/// Returns the value in memory before the atomic update \p I, and the one after it. For code behind it.
llvm::Value *valueBefore(llvm::IRBuilder<> &B, llvm::Instruction &I);
llvm::Value *valueAfter(llvm::IRBuilder<> &B, llvm::Instruction &I);

} // namespace memlode
#endif
