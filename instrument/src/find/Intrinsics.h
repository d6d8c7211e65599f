//===- Intrinsics.h - intrinsics that touch memory ------------------------===//
//
// What programmers write by hand for vectors and caches, most compilers keep as
// a target's intrinsic to the end. For each that may touch memory a table says
// where and how many bytes, or why nothing of it is recorded. Intrinsics that
// stand in none are told as not recorded; a test goes through LLVM's own list of
// those for x86 and for all targets (test/ir/intrinsics*).
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_INTRINSICS_H
#define MEMLODE_INSTRUMENT_INTRINSICS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

namespace memlode {

/// One access of an intrinsic. Pointer, Data, Mask, Index, Scale and Limit are positions of arguments.
struct IntrinsicAccess {
  static constexpr int Result = -1;
  static constexpr int None = -2;

  enum class Form {
    Plain,   ///< Bytes, or as many as the data
    Pattern, ///< as many times the data as Limit says
    Masked,  ///< lanes of the data, one behind the other
    Gather, ///< lanes of the data, each at its own place: pointer + index * scale, or the lane of the pointer
    Strided, ///< lanes of the data, Scale bytes from each to the next
    Columns, ///< columns of a matrix of Mask rows and Limit columns, Scale elements from each to the next
    Tile,    ///< rows of a tile of Mask rows of Limit bytes (None: 16 rows of 64 bytes), Scale bytes apart
  };

  unsigned Kind; ///< MEMLODE_KIND_*
  Form Is;
  int Pointer;
  int Data = Result;
  uint64_t Bytes = 0; ///< of a lane or the whole; 0: those of the data
  int Mask = None;    ///< whose bits, or signs of lanes, are set where a lane is accessed; None: all are
  int Index = None;
  int Scale = None;
  int Limit = None;   ///< lanes from this number on are not accessed
  unsigned Flags = 0; ///< MEMLODE_FLAG_*
};

/// Returns the accesses of \p II as far as they are known; an empty list if it touches no memory
/// that an address of the program names, and nothing if the intrinsic is not known.
std::optional<llvm::ArrayRef<IntrinsicAccess>> intrinsicAccesses(const llvm::IntrinsicInst &II);

/// Returns how many lanes \p A has; 0 if that is not known when compiling.
unsigned lanesOf(const llvm::IntrinsicInst &II, const IntrinsicAccess &A);

/// Returns the bytes of the whole of \p A or of one of its lanes; 0 if they are not known when compiling.
uint64_t bytesOf(const llvm::IntrinsicInst &II, const IntrinsicAccess &A);

/// Values by which an intrinsic's access is recorded, if they are not among its arguments.
struct IntrinsicOperands {
  llvm::Value *Pointer = nullptr; ///< or a vector of pointers
  llvm::Value *Mask = nullptr;    ///< a vector of i1
  llvm::Value *Length = nullptr;  ///< in bytes
};

/// The operands of one function's intrinsics.
class IntrinsicRanges {
public:
  /// Computes them in \p F outside the blocks of \p Dormant. Whether it added code.
  bool compute(llvm::Function &F, const llvm::DenseSet<const llvm::BasicBlock *> &Dormant);

  IntrinsicOperands of(const llvm::IntrinsicInst &II, unsigned Number) const {
    return Known.lookup({&II, Number});
  }

private:
  llvm::DenseMap<std::pair<const llvm::IntrinsicInst *, unsigned>, IntrinsicOperands> Known;
};

} // namespace memlode
#endif
