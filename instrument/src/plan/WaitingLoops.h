//===- WaitingLoops.h - loops that wait for another thread ----------------===//
//
// A waiting loop only looks whether another thread has done something:
//
//     while (!ready.load()) pause();      while (lock.exchange(1)) ;
//
// A turn that changes nothing says nothing but that the thread waited, and how
// often it looked is the schedule's doing, also where it keeps what it saw in a
// variable, or lets others run meanwhile. So sites of such loops have a flag
// of their own, and what they look at orders threads although the program may
// not say so: a store to a `volatile` that somebody waits for is a release.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_WAITINGLOOPS_H
#define MEMLODE_INSTRUMENT_WAITINGLOOPS_H

#include "find/Finder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

/// The accesses of a function's waiting loops.
using Polls = llvm::SmallPtrSet<const llvm::Instruction *, 4>;

/// Finds them in \p F.
Polls findPolls(llvm::Function &F, const Finder &Accesses, llvm::FunctionAnalysisManager &FAM);

/// Returns whether \p I, in a waiting loop, learns what others did, though it does not say so.
bool acquiresByWaiting(const llvm::Instruction &I);

/// The memory of a module that somebody waits for without saying so.
class AwaitedMemory {
public:
  /// Adds what \p Looks look at.
  void add(const Polls &Looks);

  /// The memory through which \p I releases what its thread did, though it does not say so; null if it does
  /// not.
  llvm::Value *releasedBy(llvm::Instruction &I) const;

private:
  /// Variables, and type-based tags of members.
  llvm::DenseSet<const void *> Places;
};

} // namespace memlode
#endif
