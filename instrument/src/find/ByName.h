//===- ByName.h - tables whose rows each have several names ---------------===//
#ifndef MEMLODE_INSTRUMENT_BYNAME_H
#define MEMLODE_INSTRUMENT_BYNAME_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace memlode {

/// The rows of \p Table by each of their `Names`, which spaces separate. The table outlives what is
/// returned.
template <class Rows> auto byName(const Rows &Table) {
  llvm::StringMap<decltype(&*std::begin(Table))> Found;
  for (const auto &Row : Table) {
    llvm::SmallVector<llvm::StringRef, 16> Names;
    llvm::StringRef(Row.Names).split(Names, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (const llvm::StringRef Name : Names)
      Found[Name] = &Row;
  }
  return Found;
}

} // namespace memlode
#endif
