//===- AddressParts.h - constant offset and strides of a GEP --------------===//
#ifndef MEMLODE_INSTRUMENT_ADDRESSPARTS_H
#define MEMLODE_INSTRUMENT_ADDRESSPARTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Operator.h"

namespace memlode {

/// `p + Offset + Σ stride·variable`, where only the strides of the variable part are known. A choice between
/// two constants (`left ? 16 : 24`) is in Offset and, as the distance to the other, in Choices.
struct AddressParts {
  int64_t Offset = 0;
  llvm::SmallVector<int64_t, 1> Choices;
  llvm::SmallVector<uint64_t, 2> Strides;
};

/// \p AsWritten leaves indices whole: `a[i - 1]` is an index. Optimisation folds its constant into
/// the offset of other steps, so later it has to be split off.
AddressParts addressParts(const llvm::GEPOperator &G, const llvm::DataLayout &Layout, bool AsWritten = false);

} // namespace memlode
#endif
