//===- UnrecordedPlaces.h - what is not recorded, by segments -------------===//
//
// Inline assembly, operations that nobody knows, calls of functions that another
// unit has: what they do to memory is not in the stream. How often they are
// executed is, as a segment of the same stretch of code is executed as often.
// Where a stretch has none, it gets one without accesses, of one word.
//
// Whether a function of another unit is recorded is known when the tables of all
// units are read: the names of calls are filed, and a unit files the names of its
// functions.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_UNRECORDEDPLACES_H
#define MEMLODE_INSTRUMENT_UNRECORDEDPLACES_H

#include "plan/Segments.h"

#include "llvm/ADT/DenseMap.h"

namespace memlode {

/// Functions that are left alone, and why.
using SkippedFunctions = llvm::DenseMap<const llvm::Function *, const char *>;

/// Adds the unrecorded places of \p P to its segments, and adds segments where none would count
/// them.
void findUnrecorded(Plan &P, const Finder &Accesses, const Allocators &Functions,
                    const SkippedFunctions &Skipped, const llvm::TargetLibraryInfo &TLI);

} // namespace memlode
#endif
