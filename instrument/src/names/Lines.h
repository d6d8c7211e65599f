//===- Lines.h - the source line of any instruction -----------------------===//
#ifndef MEMLODE_INSTRUMENT_LINES_H
#define MEMLODE_INSTRUMENT_LINES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"

namespace memlode {

/// Source lines of one function. Optimisation leaves some instructions without one (line 0: "compiler-made,
/// or merged from several"); those borrow the line of what they compute with, or of their nearest neighbour.
class Lines {
public:
  explicit Lines(llvm::Function &F) : F(F) {}

  struct Line {
    const llvm::DILocation *At = nullptr; ///< null only in a function without debug info
    bool Approximate = false;
  };

  Line of(const llvm::Instruction &I);

private:
  const llvm::DILocation *borrowed(const llvm::Instruction &I) const;
  void findNeighbours();

  llvm::Function &F;
  bool Searched = false;
  llvm::DenseMap<const llvm::Instruction *, const llvm::DILocation *> Neighbour;
};

} // namespace memlode
#endif
