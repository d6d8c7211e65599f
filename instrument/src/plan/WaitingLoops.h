//===- WaitingLoops.h - loops that wait for another thread ----------------===//
//
// A waiting loop only looks whether another thread has done something:
//
//     while (!ready.load()) pause();      while (lock.exchange(1)) ;
//
// An iteration that changes nothing says nothing but that the thread waited, and how
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

/// Returns whether \p I, in a waiting loop, acquires the results of others without an acquire
/// order.
bool acquiresByWaiting(const llvm::Instruction &I);

/// The memory of a module for which a thread waits without an atomic order.
class AwaitedMemory {
public:
  /// Adds the memory that \p Looks look at.
  void add(const Polls &Looks);

  /// The memory through which \p I releases its thread's results without a release order; null if
  /// it does not.
  llvm::Value *releasedBy(llvm::Instruction &I) const;

private:
  /// Variables, and type-based tags of members.
  llvm::DenseSet<const void *> Places;
};

} // namespace memlode
#endif
