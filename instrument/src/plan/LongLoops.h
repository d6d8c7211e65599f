//===- LongLoops.h - when loops that are one record began and ended -------===//
//
// A loop that is told at once has one place in the stream, however long it ran.
// When it began and when it was over is said by stamps beside it, if it iterations
// often enough for them to cost nothing:
//
//   if (n >= 4096) stamp;
//   repeat n times …;  for (…) …
//   if (n >= 4096) stamp;
//
// They are releases of no object, which order nothing.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_LONGLOOPS_H
#define MEMLODE_INSTRUMENT_LONGLOOPS_H

#include "sides/Versions.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

/// Blocks in which nothing stands but the stamp that is to be there.
using StampBlocks = llvm::SmallPtrSet<const llvm::BasicBlock *, 8>;

/// Makes stamps in \p F, whose sides are \p Sides, beside those of its loops with headers \p
/// Repeats that may be long. If there are any, the analyses of \p F are no longer valid.
StampBlocks makeStampBlocks(llvm::Function &F, const Versions &Sides,
                            const llvm::SmallPtrSetImpl<const llvm::BasicBlock *> &Repeats,
                            llvm::FunctionAnalysisManager &FAM);

/// Returns whether \p I is not the program's, but was added to decide whether a stamp is due.
bool decidesOnStamps(const llvm::Instruction &I);

} // namespace memlode
#endif
