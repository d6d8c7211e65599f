//===- DebugRecords.h - variables that debug records tie to values --------===//
#ifndef MEMLODE_INSTRUMENT_DEBUGRECORDS_H
#define MEMLODE_INSTRUMENT_DEBUGRECORDS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Function.h"

#include <string>

namespace memlode {

/// One belief about a pointer: it points `Offset` bytes into an object of type `Type`.
struct Place {
  const llvm::DIType *Type = nullptr; ///< null: void or unknown
  int64_t Offset = 0;
  llvm::SmallVector<uint64_t, 2> Strides;
  llvm::SmallVector<int64_t, 1> Choices; ///< distances from Offset to other places it may be instead
  std::string Text;      ///< the source expression for the object or, with Arrow, for the pointer to it
  bool Arrow = false;    ///< Text is a pointer: members are written with `->`
  bool Repeats = false;  ///< the object may be an element of an array
  bool Indirect = false; ///< not the object but its address is stored here
  int64_t Beyond = 0;    ///< with Indirect: the object starts this far behind that address
  bool Merged = false;   ///< on another path the pointer leads to something else
  unsigned Distance = 0; ///< guesses made on the way
  bool FromTag = false;  ///< the alias tag alone gave the type
  const llvm::DICompositeType *Via = nullptr; ///< the record that the code itself last indexed,
  int64_t ViaOffset = 0;                      ///< and the offset in it: tells union members apart
  const llvm::DILocalVariable *Variable =
      nullptr; ///< the record that vouches, for choosing among inlined frames
  const llvm::DILocation *Frame = nullptr;
};

/// The name of a variable. Those that clang makes for OpenMP (`.omp.lb`, `.global_tid.`) share one: which of
/// them it is tells nobody anything.
std::string nameOf(const llvm::DILocalVariable &Var);

/// The debug records of one function by the value they speak of.
class DebugRecords {
public:
  explicit DebugRecords(llvm::Function &F);

  /// Adds the places that variables give for the pointer \p V: variables that live where it points,
  /// and variables whose value it is.
  void places(const llvm::Value *V, llvm::SmallVectorImpl<Place> &Out) const;

  /// The type of a variable whose value is \p V, or null.
  const llvm::DIType *typeOf(const llvm::Value *V) const;
  /// The type of the variable that lives at \p Slot, or null.
  const llvm::DIType *typeAt(const llvm::Value *Slot) const;

  /// Returns the place that the variable of a global gives for its address.
  static bool globalPlace(const llvm::DIGlobalVariableExpression &E, Place &Out);

private:
  struct Word {
    llvm::DbgVariableRecord *Record;
    bool Spilled; ///< the value was stored where the record says the variable lives
  };
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<Word, 2>> ByValue;
};

} // namespace memlode
#endif
