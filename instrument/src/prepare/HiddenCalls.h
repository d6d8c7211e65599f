//===- HiddenCalls.h - calls that only the code generator makes -----------===//
//
// `frem` is a call of fmod, `llvm.sin` one of sin, a division of 128 bits one of
// __udivti3, the address of a thread's own variable perhaps one of
// __tls_get_addr, which may call malloc. Any of these functions may be the
// program's own, or call what is, and then code that records runs in the middle
// of a run of accesses. So the cursor has to be handed over there as at a call.
//
// Most of these instructions do not touch memory as far as the code generator
// knows, and it moves their calls about as it likes: across the loads and stores
// of the cursor, too. They become calls here, of functions of this module that
// hold nothing but the instruction. What is ordered with memory anyway (copies
// and fills, atomics) stays where it is.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_HIDDENCALLS_H
#define MEMLODE_INSTRUMENT_HIDDENCALLS_H

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// Returns whether the code generator may make a call of \p I where the program has none, or has an
/// intrinsic.
bool mayBecomeCall(const llvm::Instruction &I);

/// The thread-local variable whose address \p V is, or null.
const llvm::GlobalVariable *threadLocalOf(const llvm::Value *V);

/// The functions that one module's hidden calls have been moved to.
class HiddenCalls {
public:
  explicit HiddenCalls(llvm::Module &M) : M(M) {}

  /// Replaces operations in \p F that may become calls by calls, outside the blocks of \p Dormant.
  /// Returns whether it changed anything.
  bool open(llvm::Function &F, const llvm::DenseSet<const llvm::BasicBlock *> &Dormant,
            const llvm::TargetLibraryInfo &TLI);

  /// Returns whether \p F is one of them.
  static bool isOne(const llvm::Function &F);

private:
  bool nameThreadLocals(llvm::Function &F, const llvm::DenseSet<const llvm::BasicBlock *> &Dormant);
  llvm::Function *functionFor(const llvm::Instruction &I, llvm::ArrayRef<llvm::Value *> Operands);

  llvm::Module &M;
  llvm::StringMap<llvm::Function *> Made;
};

} // namespace memlode
#endif
