//===- TailCalls.h - calls that become jumps ------------------------------===//
//
// A function that ends with a call may leave by a jump: its frame is gone when the callee is entered, and
// nothing can be recorded behind the call. So its exit is recorded in front.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_TAILCALLS_H
#define MEMLODE_INSTRUMENT_TAILCALLS_H

#include "llvm/IR/BasicBlock.h"

namespace memlode {

/// The last instruction of \p B before which the exit may be recorded: the return, or the call in
/// front of it that the code generator may turn into a jump.
llvm::Instruction *exitPoint(llvm::BasicBlock &B);

} // namespace memlode
#endif
