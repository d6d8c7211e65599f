//===- ExecutedBefore.h - segments that are surely executed before a block -===//
#ifndef MEMLODE_INSTRUMENT_EXECUTEDBEFORE_H
#define MEMLODE_INSTRUMENT_EXECUTEDBEFORE_H

#include "plan/Segments.h"

#include "llvm/ADT/BitVector.h"

namespace memlode {

/// For each block of a plan, the segments executed on every path to it with no call that may record behind
/// them. Empty if the function is so large that the sets would not fit.
std::vector<llvm::BitVector> segmentsBehind(const Plan &P);

} // namespace memlode
#endif
