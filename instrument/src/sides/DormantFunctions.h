//===- DormantFunctions.h - a dormant side that is a function of its own --===//
//
// Where sides are changed at the entry alone, they need nothing of each other's frame:
//
//   f:    room in the cursor? ─ no ─► recording off? ─ yes ─► f.dormant
//           │ yes                       │ no                       ▲ off
//           ▼                           ▼                          │
//         f.recording                 f.ask: make room; room now? ─┴─ yes ─► f.recording
//
// All of these are jumps. No side saves registers for the other one, and what a dormant side calls in the
// same module is entered at its dormant side, with nothing to ask: recording is taken up again at the next
// loop, recursion, or call from elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_DORMANTFUNCTIONS_H
#define MEMLODE_INSTRUMENT_DORMANTFUNCTIONS_H

#include "sides/Versions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// Returns whether \p F, in which sides are changed at the entry alone, may be made two functions.
bool mayStandApart(const llvm::Function &F);

/// Makes the dormant function of \p F, which becomes the recording one, and those in front of the two, whose
/// bodies are the emitter's.
Versions standApart(llvm::Function &F);

/// Ends \p From with a jump to \p To, which takes the same arguments as the function that \p From is in.
void jumpTo(llvm::Function &To, llvm::BasicBlock &From);

/// The calls between dormant sides of a module.
///
/// A call without a test whether recording is on again is harmless as long as another test follows
/// soon. Tests stand in recursions, and behind calls that may have switched recording on in this
/// thread, on which a program can rely.
class DormantCalls {
public:
  using LibraryOf = llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)>;
  DormantCalls(llvm::Module &M, LibraryOf Library);

  /// Records the calls of \p F's dormant side.
  void note(llvm::Function &F, const Versions &Sides, const llvm::TargetLibraryInfo &TLI);
  /// When all functions are made: leads the calls that were noted to dormant functions, and all others to
  /// where sides are chosen.
  void redirect();

private:
  bool maySwitch(const llvm::Instruction &I, const llvm::TargetLibraryInfo &TLI) const;

  llvm::DenseMap<const llvm::Function *, unsigned> Circle; ///< equal for functions that call each other
  llvm::DenseSet<const llvm::Function *> Unknown;          ///< those that may switch recording on
  llvm::MapVector<llvm::Function *, Versions> Apart;
  llvm::SmallVector<llvm::CallBase *, 64> Calls;
};

} // namespace memlode
#endif
