//===- WholeLoops.h - loops whose accesses are told at once ---------------===//
//
// A loop of one block, with a trip count that is known when it begins and
// accesses that go the same step each time, needs no record in it:
//
//   for (i = 0; i < n; i++)         repeat n times:
//     sum += a[i].x * b[2 * i];       load a[].x    at &a[0].x, step sizeof *a
//                                     load b[]      at &b[0],   step 2 * sizeof *b
//
// is said in front of it, and the loop itself runs as fast as it did. Should the
// program end or jump out of a signal handler while the loop is at it, the trace
// holds accesses that were only about to happen.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_WHOLELOOPS_H
#define MEMLODE_INSTRUMENT_WHOLELOOPS_H

#include "plan/Segments.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace llvm {
class LoopInfo;
class ScalarEvolution;
class TargetTransformInfo;
} // namespace llvm

namespace memlode {

/// Headers of the loops of a function that can be recorded at once.
using RepeatedLoops = llvm::SmallPtrSet<const llvm::BasicBlock *, 8>;

/// Finds these loops in \p LI, and gives each a preheader that leads nowhere else.
RepeatedLoops findRepeats(const Finder &Accesses, llvm::DominatorTree &DT, llvm::LoopInfo &LI,
                          llvm::ScalarEvolution &SE);

/// Moves the records of such loops in \p P in front of them.
void hoistRepeats(Plan &P, const llvm::LoopInfo &LI, llvm::ScalarEvolution &SE,
                  const llvm::TargetTransformInfo &TTI);

} // namespace memlode
#endif
