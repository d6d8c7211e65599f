//===- SourceFidelity.h - recording the program before it is optimised ----===//
//
// With MEMLODE_FIDELITY=source code is added where the pipeline starts: accesses
// are those that the source names. Then the optimiser works on a program that
// records, and this is what keeps the two out of each other's way.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_SOURCEFIDELITY_H
#define MEMLODE_INSTRUMENT_SOURCEFIDELITY_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

using Registers = llvm::SmallPtrSet<const llvm::AllocaInst *, 16>;

/// Variables of \p F that become registers as soon as anything is optimised: no memory to the source either.
Registers registersOf(const llvm::Function &F);

/// Inlines calls that the source demands to be inlined, as the pipeline would do soon: afterwards a
/// function that records stays whole.
void inlineDemanded(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);

/// Makes \p F, which records, safe to optimise: its frame stays its own, and calls that may record
/// keep their place and their effect on the cursor.
void keepThroughOptimisation(llvm::Function &F);

/// Marks \p M as recording already.
void markAsWritten(llvm::Module &M);
bool isAsWritten(const llvm::Module &M);

} // namespace memlode
#endif
