//===- AllocationUse.h - what fresh memory is for -------------------------===//
#ifndef MEMLODE_INSTRUMENT_ALLOCATIONUSE_H
#define MEMLODE_INSTRUMENT_ALLOCATIONUSE_H

#include "names/PointerWalk.h"

namespace memlode {

/// An allocation returns `void *`; its type shows in the program's use of the result.
struct AllocationUse {
  const llvm::DIType *Element = nullptr; ///< null: never seen as anything but bytes
  std::string Variable;                  ///< where the pointer was put
  std::string Member;                    ///< and which member of it
  bool FromTag = false;                  ///< alias tags of accesses to the memory gave the type
};

AllocationUse useOf(llvm::CallBase &Call, PointerWalk &Walk, TypeNames &Types);

/// The use of a block whose address \p Call has stored at \p Place.
AllocationUse useOf(llvm::CallBase &Call, llvm::Value &Place, PointerWalk &Walk, TypeNames &Types);

} // namespace memlode
#endif
