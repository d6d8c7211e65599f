//===- CallEffects.h - what a call can do to the recorder -----------------===//
//
// Between two accesses the cursor may stay in a register unless something in
// between can itself record: then it is handed over through memory. Whatever
// its name, a function may be the program's own.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_CALLEFFECTS_H
#define MEMLODE_INSTRUMENT_CALLEFFECTS_H

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstrTypes.h"

namespace memlode {

/// Library functions that copy or fill memory and are recorded where they are called, and there only: the
/// compiler makes calls of them from loops, and loops from calls.
enum class Transfer {
  None,
  Copy,     ///< (to, from, bytes …)
  CopyFrom, ///< (from, to, bytes): bcopy
  Fill,     ///< (to, value, bytes …)
  Clear     ///< (to, bytes): bzero
};

/// The name by which \p F is known to the library, or nothing when it is the program's own.
llvm::StringRef libraryName(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

/// The transfer that \p Call is by the name of the library function it calls; None for intrinsics.
Transfer libraryTransfer(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI);

/// Returns whether \p Name is that of such a function.
bool isTransferName(llvm::StringRef Name);

/// Marks a function that is the program's own definition of one under another name (OwnTransfers.h). Its
/// value is that name if callers may use both.
constexpr llvm::StringLiteral TransferMark = "memlode-transfer";

/// Returns whether \p F is the program's own definition of such a function.
bool isTransfer(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

/// Returns whether code that records may run while \p I is executed.
bool mayRecord(const llvm::Instruction &I);

/// Returns whether \p Call is reason enough to record the frame it is made in. Calls that only
/// compute are not: hidden calls, and functions of libm by their name.
bool isWorthAFrame(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI);

} // namespace memlode
#endif
