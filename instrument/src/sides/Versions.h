//===- Versions.h - a function twice: recording and dormant ---------------===//
//
// Bursty tracing (Arnold and Ryder, PLDI 2001; Hirzel and Chilimbi, FDDO 2001): a function holds its code
// twice, and control changes sides at few places.
//
//             entry ── is there room in the cursor? ──┐
//               │ yes                                 │ no, and recording is off
//               ▼                                     ▼
//        ┌► recording loop ── no room, and off ─► dormant loop ◄┐
//        │   header, body                         header, body  │
//        └──────┘          ◄─ resume ── on again ────┘     └────┘
//
// They are the entry, the headers of loops and those labels whose address may go anywhere. Both sides pay the
// test of one word of memory for it; the recording side not at the entry, where it tests its cursor for room
// anyway. In an inner loop that may count to many recording is only taken up. What the two sides compute
// meets in phis in front of the loops. Where the entry is the only such place, the sides are two functions
// (DormantFunctions.h).
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_VERSIONS_H
#define MEMLODE_INSTRUMENT_VERSIONS_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace memlode {

/// The two sides of a function. Empty: the function has one side, which records.
struct Versions {
  /// The beginning of the recording side.
  llvm::BasicBlock *Body = nullptr;
  /// Blocks that record nothing.
  llvm::DenseSet<const llvm::BasicBlock *> Dormant;
  /// Recording blocks whose branch goes to the dormant side when its condition holds. It does not
  /// hold until the emitter replaces it by the test of the cursor.
  llvm::SmallPtrSet<llvm::BasicBlock *, 8> Switches;
  /// Blocks in which a frame begins to record in its middle.
  llvm::SmallPtrSet<const llvm::BasicBlock *, 8> Wakes;
  /// Jumps of the dormant side to labels that both sides share; no cursor is known there.
  llvm::SmallVector<llvm::Instruction *, 2> SharedJumps;
  /// Calls of the recording side, each with its copy on the dormant one.
  llvm::SmallVector<std::pair<llvm::CallBase *, llvm::CallBase *>, 16> Calls;
  /// Addresses of the dormant side's own labels, or null.
  llvm::GlobalVariable *DormantLabels = nullptr;

  /// The two functions if each side is a separate one (DormantFunctions.h): the dormant one, the
  /// one that all callers call, and the one that makes room. The function itself is the recording
  /// side.
  llvm::Function *Apart = nullptr;
  llvm::Function *Front = nullptr;
  llvm::Function *Ask = nullptr;

  explicit operator bool() const { return Body != nullptr; }
};

/// Why \p F has to be left with one side, or null.
const char *whySingle(const llvm::Function &F);

/// Makes the second side of \p F. Analyses of it are not valid afterwards. Sides are not changed in
/// the loops that begin at \p Uncrossed: they have nothing to record in them.
Versions makeVersions(llvm::Function &F, llvm::DominatorTree &DT, llvm::LoopInfo &LI,
                      llvm::ScalarEvolution &SE,
                      const llvm::SmallPtrSetImpl<const llvm::BasicBlock *> &Uncrossed);

/// Leaves the recording side of \p F alone in it.
void dropDormant(llvm::Function &F, const Versions &Sides);

/// Reads the word that is not 0 while recording is off.
llvm::Value *loadDormant(llvm::IRBuilder<> &B);

} // namespace memlode
#endif
