//===- CallSites.h - which call a function was entered from ---------------===//
//
// A frame is recorded by the function that is entered, so the stream does not say
// which of the caller's calls it was. What it says is the segment that the caller
// executed last. For each segment, the table lists the calls that may come between
// it and the caller's next segment:
//
//      block            steps                    calls behind the segment
//     ┌──────────────┐
//     │ load a       │  Segment 1 [a]            f at line 3, f at line 4
//     │ x = f()      │  Commit, Reload
//     │ y = f()      │  Commit, Reload
//     └──────────────┘
//
// A reader tells calls of different functions apart by who is entered. Two calls of
// one function, or of who knows which, it cannot: each of these then gets a segment of
// its own, without an access, provided that memory may be allocated in them. That is
// what call sites are wanted for: two calls of one wrapper of malloc are two objects.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_CALLSITES_H
#define MEMLODE_INSTRUMENT_CALLSITES_H

#include "plan/Segments.h"

#include "llvm/ADT/DenseSet.h"

namespace memlode {

/// The functions of a module that are known to call no function that allocates memory.
class Frugal {
public:
  /// Looks at \p M as the program has it, before anything records.
  Frugal(const llvm::Module &M, const Allocators &Functions,
         llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)> TLI);

  /// Returns whether memory may be allocated by recorded code that \p Call enters.
  bool mayAllocate(const llvm::CallBase &Call, const llvm::TargetLibraryInfo &TLI) const;

private:
  llvm::DenseSet<const llvm::Function *> Known;
};

/// Fills in the calls behind the segments of \p P, and adds segments where calls could not be
/// distinguished.
void findCalls(Plan &P, const Frugal &Callees, const llvm::TargetLibraryInfo &TLI);

} // namespace memlode
#endif
