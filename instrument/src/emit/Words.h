//===- Words.h - the words of a segment -----------------------------------===//
//
// The words of a segment, from a given place on: its anchor, and for each access what the reader needs.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_WORDS_H
#define MEMLODE_INSTRUMENT_WORDS_H

#include "plan/Segments.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// Stores the words of a function's segments.
class Words {
public:
  /// Words from number \p Places of a segment on lie over its first ones.
  Words(llvm::Function &F, llvm::GlobalVariable &Anchors, unsigned Places)
      : F(F), M(*F.getParent()), Anchors(Anchors), Places(Places),
        Int64(llvm::Type::getInt64Ty(F.getContext())), Pointer(llvm::PointerType::getUnqual(F.getContext())) {
  }

  /// Stores the words of \p S one after the other; returns their number.
  unsigned words(llvm::IRBuilder<> &B, const Segment &S, llvm::Value *Start, unsigned Index);
  /// The address that stands for segment \p Index.
  llvm::Constant *anchor(llvm::IRBuilder<> &B, unsigned Index);
  /// The place of a word.
  llvm::Value *slot(llvm::IRBuilder<> &B, llvm::Value *Start, unsigned Position);
  /// The value of a word, which is not a stamp, lanes or a value that is moved.
  llvm::Value *word(llvm::IRBuilder<> &B, const Word &W);
  /// A place for words that nobody reads. Few bytes: threads begin with fresh ones. Behind the last place
  /// there is room for the longest vector.
  llvm::GlobalVariable *unread();

private:
  void store(llvm::IRBuilder<> &B, llvm::Value *What, llvm::Value *Start, unsigned &Position);
  void op(llvm::IRBuilder<> &B, const Op &O, llvm::Value *Start, unsigned &Position);
  /// Returns the stored value in its form in memory, or null.
  llvm::Value *moved(llvm::IRBuilder<> &B, const Word &W);
  /// Reads the pointer at \p From if \p Condition holds; NULL otherwise, when there may be no
  /// memory. Splits the block.
  llvm::Value *storedIf(llvm::IRBuilder<> &B, llvm::Value *Condition, llvm::Value *From);
  llvm::Value *integer(llvm::IRBuilder<> &B, llvm::Value *V);
  llvm::Value *bits(llvm::IRBuilder<> &B, llvm::Value *Mask);

  llvm::Function &F;
  llvm::Module &M;
  llvm::GlobalVariable &Anchors;
  const unsigned Places;
  llvm::Type *Int64;
  llvm::Type *Pointer;
};

} // namespace memlode
#endif
