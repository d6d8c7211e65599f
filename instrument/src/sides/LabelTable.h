//===- LabelTable.h - interpreters that jump through a table of labels ----===//
//
// Where a program takes the addresses of labels, as an interpreter does with `goto *table[op]`, a function
// made twice has each label twice. Addresses that go through one constant table, and are jumped to at once,
// can be told apart: the other side gets a table of its own labels. Others may be kept anywhere, so that both
// sides have to share the label.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_LABELTABLE_H
#define MEMLODE_INSTRUMENT_LABELTABLE_H

#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

namespace memlode {

/// The only jump of a function to addresses of labels, and the table they all come from.
struct LabelTable {
  llvm::IndirectBrInst *Jump = nullptr;
  llvm::GlobalVariable *Table = nullptr;

  explicit operator bool() const { return Table != nullptr; }
};

/// The table of \p F, if no address of its labels is seen anywhere but between it and a jump in the same
/// block.
LabelTable labelTableOf(llvm::Function &F);

} // namespace memlode
#endif
