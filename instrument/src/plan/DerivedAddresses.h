//===- DerivedAddresses.h - addresses that need no word of the stream -----===//
//
// An address that is a constant distance from one that the segment, or an earlier
// segment, has written is said in the table instead; so is a length equal to an
// earlier one of the segment.
//
// The earlier segment must be the last word on the matter whenever the address is
// needed: it is executed on every path there, and behind it nothing that records
// is called, which could execute it once more in another frame. Both bases are
// then one SSA value in one iteration: had its definition been passed again, so
// would have the segment, which it dominates.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_DERIVEDADDRESSES_H
#define MEMLODE_INSTRUMENT_DERIVEDADDRESSES_H

#include "plan/Segments.h"

namespace llvm {
class LoopInfo;
class ScalarEvolution;
} // namespace llvm

namespace memlode {

void derive(Plan &P, const llvm::DataLayout &DL, llvm::ScalarEvolution &SE, const llvm::LoopInfo &Loops);

} // namespace memlode
#endif
