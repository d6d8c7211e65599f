//===- ValueUse.h - what becomes of a pointer that moves through memory ---===//
#ifndef MEMLODE_INSTRUMENT_VALUEUSE_H
#define MEMLODE_INSTRUMENT_VALUEUSE_H

#include "names/AccessShape.h"
#include "names/DebugRecords.h"

namespace memlode {

/// Looks at the pointer that the access loads or stores. Never follows other pointers, so that a walk can ask
/// it.
ValueUse useOfValue(const AccessShape &A, const DebugRecords &Records);

/// The type of the variable or result that the loaded value becomes, or that the stored value comes from;
/// null if that is none or not a scalar.
const llvm::DIType *typeOfValue(const AccessShape &A, const DebugRecords &Records);

} // namespace memlode
#endif
