//===- SyncPoints.h - where a thread learns what others did ---------------===//
//
// Behind each such place the stream gets a time stamp (format/SPEC.md §4.4 says
// why these places alone, and why behind them). What the program synchronises
// by is atomics and calls; relaxed atomics order nothing and get no stamp.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_SYNCPOINTS_H
#define MEMLODE_INSTRUMENT_SYNCPOINTS_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"

namespace memlode {

/// Returns whether \p I is an atomic operation or a fence that acquires.
bool acquires(const llvm::Instruction &I);

/// The memory that \p I, an atomic operation, accesses; null for a fence.
llvm::Value *atomicObject(llvm::Instruction &I);

/// The memory through which \p I, an atomic operation, releases; null if it does not.
llvm::Value *releasedBy(llvm::Instruction &I);

/// A call's effect on the order of threads, by an object that it is given.
struct SyncCall {
  uint8_t Kind;          ///< MEMLODE_SYNC_*
  unsigned Object;       ///< which argument leads to it
  bool IsBehind;         ///< whether it has done so when it returns
  bool IsStored = false; ///< whether the argument leads to a thread's handle
  int64_t Distance = 0;  ///< from where the argument leads to the object
  /// True if the object is the second of two words that are returned, and no argument.
  bool IsReturned = false;
  /// The result of the call if it has done so; otherwise there is no object.
  enum class If { Always, Zero, NotZero } Done = If::Always;
  /// True if there may be other threads from now on.
  bool MakesThreads = false;
};

/// All effects of \p Call on the order of threads, by object.
llvm::SmallVector<SyncCall, 3> syncsOf(const llvm::CallBase &Call);

/// Returns whether \p Call may return because of another thread or process: it locks, waits, joins
/// or receives.
bool waitsForOthers(const llvm::CallBase &Call);

/// Returns whether \p F is the body of a parallel region, run by threads that wait for work in a library.
bool isParallelBody(const llvm::Function &F);

/// Returns whether it is a construct whose threads all begin and end together: they begin after a
/// signal on the function, and their ends are signals on the address EndOfBody bytes behind it.
bool isForkedBody(const llvm::Function &F);
constexpr int64_t EndOfBody = 1;

/// The time stamp counter, read where \p B stands. If it \p Waits, everything before it is done by then.
llvm::Value *readCounter(llvm::IRBuilder<> &B, bool Waits);

/// The time stamp counter, read in front of \p Before; 1 as long as there are no other threads. If
/// it \p Waits, everything before it is done by then, which costs as much again. Splits the block.
llvm::Value *emitStamp(llvm::Instruction *Before, bool Waits);

} // namespace memlode
#endif
