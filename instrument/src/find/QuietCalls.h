//===- QuietCalls.h - calls that leave the program's memory alone ---------===//
#ifndef MEMLODE_INSTRUMENT_QUIETCALLS_H
#define MEMLODE_INSTRUMENT_QUIETCALLS_H

#include "llvm/ADT/StringRef.h"

namespace memlode {

/// Returns whether a function of another unit that is called \p Name accesses no memory of the
/// program: a function of libc that Libc.def marks so, or one of the languages' runtimes that only
/// allocates, throws or exits.
bool isQuiet(llvm::StringRef Name);

} // namespace memlode
#endif
