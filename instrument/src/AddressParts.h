//===- AddressParts.h - constant offset and strides of a GEP --------------===//
#ifndef MEMLODE_INSTRUMENT_ADDRESSPARTS_H
#define MEMLODE_INSTRUMENT_ADDRESSPARTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Operator.h"

namespace memlode {

/// `p + Offset + Σ stride·variable`, where only the strides of the variable part are known.
struct AddressParts {
  int64_t Offset = 0;
  llvm::SmallVector<uint64_t, 2> Strides;
};

AddressParts addressParts(const llvm::GEPOperator &G, const llvm::DataLayout &Layout);

} // namespace memlode
#endif
