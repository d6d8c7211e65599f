//===- Calls.h - what a call can do to the recorder -----------------------===//
//
// Between two accesses the cursor may stay in a register unless a call in
// between can itself record: then it is handed over through memory.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_CALLS_H
#define MEMLODE_INSTRUMENT_CALLS_H

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstrTypes.h"

namespace memlode {

/// Library functions that copy or fill memory and are recorded where they are called.
enum class Transfer {
  None,
  Copy,     ///< (to, from, bytes …)
  CopyFrom, ///< (from, to, bytes): bcopy
  Fill,     ///< (to, value, bytes …)
  Clear     ///< (to, bytes): bzero
};

/// The transfer that \p Call is by the name of the library function it calls; None for intrinsics.
Transfer libraryTransfer(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI);

/// Whether code that records may run during \p Call.
bool mayRecord(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI);

/// Whether \p F defines a library function whose callers assume that it records nothing.
bool callersAssumeSilence(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

} // namespace memlode
#endif
