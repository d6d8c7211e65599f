//===- DormantEvents.h - what comes and goes while nothing is recorded -----===//
#ifndef MEMLODE_INSTRUMENT_DORMANTEVENTS_H
#define MEMLODE_INSTRUMENT_DORMANTEVENTS_H

#include "emit/Words.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstrTypes.h"

namespace memlode {

/// Records allocations in code that records nothing else.
class DormantEvents {
public:
  DormantEvents(llvm::Function &F, Words &Stored) : F(F), M(*F.getParent()), Stored(Stored) {}

  /// Emits code that records that \p Call makes or ends an object, unless no segment is to be
  /// recorded. The test is made in front of the call: if nothing is recorded, the call stays as it
  /// was, perhaps in tail position, and its arguments need not be kept.
  void whileDormant(llvm::CallBase &Call, const Op &O, unsigned Index);

private:
  llvm::Value *isWanted(llvm::IRBuilder<> &B);
  /// Calls the recorder in front of \p Before. The \p Planned word is \p Call.
  void say(llvm::Instruction *Before, llvm::CallBase &Call, const Op &O, unsigned Index,
           llvm::Value *Planned = nullptr);

  llvm::Function &F;
  llvm::Module &M;
  Words &Stored;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Joint; ///< what calls return that stand twice
};

} // namespace memlode
#endif
