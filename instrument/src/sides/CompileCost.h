//===- CompileCost.h - functions and files that would take too long to compile ===//
//
// A function with two sides (Versions.h) costs the code generator about twice its own time, and more where
// calls and loops are dense: each call is followed by a test for room, each loop is a place where sides are
// changed. Where that would be more than three times, a function gets one side, and, if it is full of calls,
// tests for room that are calls themselves, which are no branches. Nothing that it does is lost to the
// recording.
//
// What is predicted depends on the code alone: the same file gives the same object on each machine. Its
// figures are fitted to the files of bench/large.py.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_COMPILECOST_H
#define MEMLODE_INSTRUMENT_COMPILECOST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

/// The ways to keep the code of a function small enough to be compiled in time.
enum class Form {
  Full = 0, ///< two sides, and tests for room in line
  Single,   ///< one side
  Brief     ///< one side, and tests for room are calls
};

/// Knows the functions of a module that must not be recorded at their full size.
class CompileCosts {
public:
  CompileCosts(llvm::ArrayRef<llvm::Function *> Functions, llvm::FunctionAnalysisManager &FAM);

  Form formOf(const llvm::Function &F) const { return Forms.lookup(&F); }

private:
  llvm::DenseMap<const llvm::Function *, Form> Forms; ///< of those that are not `Full`
};

} // namespace memlode
#endif
