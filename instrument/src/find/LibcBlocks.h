//===- LibcBlocks.h - blocks that functions of libc make ------------------===//
//
//   n = getline(&line, &room, f)
//
//   ->  a = __memlode_extent_word(&line), b = __memlode_extent_word(&room)
//       n = getline(&line, &room, f)
//       __memlode_block_resized(own, anchor, &line, &room, a, b)
//
// Code that was not compiled with us allocates, and the program gets the block by the
// result or where an argument says (LibcBlocks.def). The recorder looks at what the
// function wrote and says which blocks there are; the line is that of the call. What
// is called stands on both sides of a function, and says so while recording is off, too.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_LIBCBLOCKS_H
#define MEMLODE_INSTRUMENT_LIBCBLOCKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

/// A call of the recorder that says which blocks a function of libc made or ended.
struct BlockReport {
  llvm::CallBase *Of; ///< the function's call
  llvm::Value *Place; ///< where it stored the address of the block; null: it returned it
  uint8_t Code;       ///< MEMLODE_OP_* of what is recorded
  unsigned Anchors;   ///< how many kinds of blocks; their arguments are the second and following
  bool makes() const;
};

/// The reports of a module.
class LibcBlocks {
public:
  /// Adds them to \p Functions of \p M.
  void open(llvm::Module &M, llvm::ArrayRef<llvm::Function *> Functions, llvm::FunctionAnalysisManager &FAM);

  /// Returns the report that \p Call is, or null.
  const BlockReport *find(const llvm::CallBase &Call) const {
    const auto Found = Known.find(&Call);
    return Found == Known.end() ? nullptr : &Found->second;
  }

  /// The argument of a report that has the anchor of its first blocks.
  static constexpr unsigned FirstAnchor = 1;

private:
  void report(llvm::CallBase &Call);

  llvm::DenseMap<const llvm::CallBase *, BlockReport> Known;
};

/// Returns whether a function of this name is one of libc's that hand out blocks.
bool handsOutBlocks(llvm::StringRef Name);

} // namespace memlode
#endif
