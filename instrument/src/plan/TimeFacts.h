//===- TimeFacts.h - what lies between accesses, and what they wait for ---===//
//
// Three facts of each op that a time model needs and that cost nothing to record,
// as they do not change (format/SPEC.md §2.4):
//
//   instructions   about how many the program executes from the access before to
//                  this one, its own included. What blocks without a record do is
//                  spread over those that follow, by how often they are executed
//   feeds          the accesses whose loaded values its address, or what it
//                  stores, is made of: groups, of which all are waited for; in a
//                  group the latest executed counts, as it came through a phi.
//                  A load may be marked: what came from the iteration before is not what
//                  it loaded since
//   branch feeds   the same of the branches between it and the accesses that may
//                  come next: what has to be known before these are begun in vain
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_TIMEFACTS_H
#define MEMLODE_INSTRUMENT_TIMEFACTS_H

#include "plan/Segments.h"

namespace llvm {
class BlockFrequencyInfo;
class BranchProbabilityInfo;
class DominatorTree;
class LoopInfo;
class ScalarEvolution;
class TargetTransformInfo;
} // namespace llvm

namespace memlode {

/// The frequency of blocks, and the cost of instructions.
struct Execution {
  const llvm::BlockFrequencyInfo &Frequency;
  const llvm::BranchProbabilityInfo &Branches;
  const llvm::LoopInfo &Loops;
  llvm::ScalarEvolution &SE;
  const llvm::TargetTransformInfo &Target;
};

/// Fills in the instructions of the ops and segments of \p P.
void countInstructions(Plan &P, const Execution &How);

/// Fills in the loads that the accesses of \p P wait for.
void findFeeds(Plan &P, const llvm::LoopInfo &Loops, const llvm::DominatorTree &Tree);

} // namespace memlode
#endif
