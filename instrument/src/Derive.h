//===- Derive.h - addresses that need no word of the stream ---------------===//
//
// Within a segment, an address a constant distance from an earlier one, and a
// length equal to an earlier one, are said in the table instead.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_DERIVE_H
#define MEMLODE_INSTRUMENT_DERIVE_H

#include "Segments.h"

namespace llvm {
class ScalarEvolution;
}

namespace memlode {

void derive(Segment &S, const llvm::DataLayout &DL, llvm::ScalarEvolution &SE);

} // namespace memlode
#endif
