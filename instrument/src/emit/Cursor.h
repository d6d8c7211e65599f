//===- Cursor.h - the place for the next word, and room there -------------===//
//
// A function keeps its thread's cursor in a register between calls. It tests for room in front of words, and
// goes over to its dormant side where the recorder says so.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_CURSOR_H
#define MEMLODE_INSTRUMENT_CURSOR_H

#include "sides/Versions.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// The place where a function writes next.
class Cursor {
public:
  /// \p Briefly, tests for room are calls.
  Cursor(llvm::Function &F, const Versions &Sides, bool Briefly);

  /// The function's own copy of the cursor, which is to become a register.
  llvm::AllocaInst *variable() { return Variable; }

  /// The thread's cursor in memory.
  llvm::Value *threadCursor(llvm::IRBuilder<> &B);
  /// Makes room in front of \p Before; \p Fresh, no words are pending that the next ones are derived from.
  void testRoom(llvm::Instruction *Before, bool Fresh);
  /// Puts a test for room in the place of \p Choice:
  ///
  ///   room in the cursor? ─ no ─► less than what says that recording is off? ─ no ─► refill; room now?
  ///     │ yes                       │ yes                                      ▲      │ yes    │ no
  ///     ▼                           ▼                                          │      ▼        ▼
  ///   recording off? ─ yes ─────────┼──────────────────────────────────────────┘    record   sleep
  ///     │ no                        ▼
  ///     ▼                         sleep
  ///   record
  ///
  /// The bound of the second test is below any address: only a NULL cursor is less, and only while
  /// recording is off.
  ///
  /// At the entry only the cursor is tested: that makes calls cheaper, and a chunk is soon full. In
  /// a loop that is not enough: inner loops that have used up the chunk go on with scratch memory,
  /// and leave some room there.
  void changeSides(llvm::BranchInst *Choice);

private:
  /// The same, where each side is a separate function: emits the bodies of the functions that
  /// choose.
  void choose();
  llvm::Value *isFull(llvm::IRBuilder<> &B, llvm::Value *Now);
  llvm::Value *isAsleep(llvm::IRBuilder<> &B, llvm::Value *Now);
  llvm::MDNode *usual();
  llvm::MDNode *unlikely();
  llvm::Value *refill(llvm::IRBuilder<> &B, llvm::Value *Now, const char *Name);
  /// A function of this module that jumps to the recorder's \p Name. A direct call would read the
  /// address from a table into a register, and hoist that out of loops. The code generator also
  /// assumes that a call of a register may throw, so tables of landing pads, which are searched
  /// from the front, would have several times as many entries. Where there is no room for a test
  /// beside each call, the test is made here.
  llvm::Function *refiller(llvm::StringRef Name);

  llvm::Function &F;
  llvm::Module &M;
  const Versions &Sides;
  const bool Briefly;
  llvm::Type *Int64;
  llvm::Type *Pointer;
  llvm::AllocaInst *Variable;
};

} // namespace memlode
#endif
