//===- OwnTransfers.h - own copies of memcpy under other names ------------===//
//
// What memcpy and its kin do is recorded where they are called (CallEffects.h), and
// so not in a definition that the program has of one. That definition may have
// another name as well, by which it is called like any function: then it is two
// functions from here on, one for callers of memcpy and one for the others.
//
//        memcpy ─── alias, ifunc ──┐                 memcpy ──► my_copy.transfer ──► help.transfer
//                                  ▼        becomes
//        others ───────────────► my_copy ─► help     others ──► my_copy ──────────► help
//
// Functions that a definition gives its pointers to copy for it.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_OWNTRANSFERS_H
#define MEMLODE_INSTRUMENT_OWNTRANSFERS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// Returns whether \p Address is made of a pointer that its function was given, as far as that can be seen.
bool leadsFromArgument(const llvm::Value *Address);

/// Gives \p M its second functions.
void separateTransfers(llvm::Module &M,
                       llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)> TLI);

} // namespace memlode
#endif
