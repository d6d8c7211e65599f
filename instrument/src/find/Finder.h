//===- Finder.h - which instructions touch memory -------------------------===//
//
// The first step: find → describe → emit. The finder knows instructions; it
// knows nothing of names, tables or cursors. What touches memory and cannot be
// recorded comes back with a reason, never silently.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_FINDER_H
#define MEMLODE_INSTRUMENT_FINDER_H

#include "find/CallEffects.h"
#include "find/Intrinsics.h"
#include "find/LibcAccesses.h"
#include "names/Names.h"
#include "prepare/SourceFidelity.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"

namespace memlode {

/// One access of one instruction (a memcpy has two).
struct Access {
  enum class Shape {
    Plain,     ///< Bytes at Pointer
    Range,     ///< Length bytes at Pointer
    Masked,    ///< Bytes for each set lane of Mask, lane i at Pointer + i * Bytes
    Gather,    ///< Bytes for each set lane of Mask, at the lane's own pointer
    Compressed ///< as many times Bytes at Pointer as Mask has lanes set
  };

  llvm::Instruction *I = nullptr;
  llvm::Value *Pointer = nullptr; ///< Gather: the vector of pointers
  Shape Is = Shape::Plain;
  unsigned Kind = 0; ///< MEMLODE_KIND_*
  uint64_t Bytes = 0;
  llvm::Value *Length = nullptr;
  llvm::Value *Mask = nullptr;
  unsigned Lanes = 0;
  unsigned Flags = 0;    ///< MEMLODE_FLAG_*
  bool Transfer = false; ///< one side of a memcpy, memset or their like, whatever its shape
  unsigned Number = 0;   ///< among those of the instruction
  /// True if it was written in front of the function, to pass it an argument.
  bool IsParameter = false;
  /// The instruction in front of which the access is known; null: \p I itself.
  llvm::Instruction *Behind = nullptr;

  Direction direction() const;
};

/// Why an instruction's accesses, or some of them, are not recorded.
struct Skipped {
  uint8_t Reason;     ///< MEMLODE_LEFT_OUT_*
  const char *Remark; ///< name of the optimisation remark
  const char *Why;
};

struct Findings {
  llvm::SmallVector<Access, 2> Accesses;
  llvm::SmallVector<Skipped, 1> Skips;
};

class Finder {
public:
  /// Finds the accesses of \p F except those of \p NoMemory. Accesses of library functions have no
  /// length until \p Ranges are computed, and those of some intrinsics no mask and no places until
  /// \p Operands are.
  Finder(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI, const LibraryRanges &Ranges,
         const IntrinsicRanges &Operands, Registers NoMemory = {});

  Findings find(llvm::Instruction &I) const;

  /// Finds stores that pass arguments by value to \p F: the caller puts the copy where no other
  /// function knows its address. They belong to no instruction; the entry's last one stands for
  /// them.
  llvm::SmallVector<Access, 2> parameters(llvm::Function &F) const;

private:
  const llvm::DataLayout &DL;
  const llvm::TargetLibraryInfo &TLI;
  const LibraryRanges &Ranges;
  const IntrinsicRanges &Operands;
  const Registers NoMemory;
  const bool InTransfer; ///< the function copies or fills memory that its callers record
};

} // namespace memlode
#endif
