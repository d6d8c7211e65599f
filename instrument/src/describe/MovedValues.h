//===- MovedValues.h - the values that accesses move ----------------------===//
#ifndef MEMLODE_INSTRUMENT_MOVEDVALUES_H
#define MEMLODE_INSTRUMENT_MOVEDVALUES_H

#include "find/Finder.h"

#include "llvm/IR/IRBuilder.h"

namespace memlode {

/// The type of what \p A loads or stores, all lanes of it; of an update, of what is in memory. Null if the
/// program has it in no register (a range, the copy of a by-value argument), or not as it lies in memory, or
/// if it is too long for a stream.
llvm::Type *movedType(const Access &A, const llvm::DataLayout &DL);

/// Returns the value that a load or store with a movedType() loads or stores.
llvm::Value *movedValue(llvm::Instruction &I);

/// Returns the value in memory before the atomic update \p I, and the one after it. For code behind it.
llvm::Value *valueBefore(llvm::IRBuilder<> &B, llvm::Instruction &I);
llvm::Value *valueAfter(llvm::IRBuilder<> &B, llvm::Instruction &I);

} // namespace memlode
#endif
