//===- PointerWalk.h - what a pointer points to ---------------------------===//
//
// Follows a pointer back through the function to things with a name and a type:
// variables (by debug records), globals, members that were loaded, results of
// calls. Works alike before and after optimisation. One walk serves one
// function, remembers every value it met, and must not outlive changes to it.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_POINTERWALK_H
#define MEMLODE_INSTRUMENT_POINTERWALK_H

#include "AccessShape.h"
#include "MemberPath.h"
#include "TypeNames.h"

#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

#include <memory>

namespace memlode {

/// One belief about a pointer: it points `Offset` bytes into an object of type `Type`.
struct Place {
  const llvm::DIType *Type = nullptr; ///< null: void or unknown
  int64_t Offset = 0;
  llvm::SmallVector<uint64_t, 2> Strides;
  std::string Text;      ///< the source expression for the object or, with Arrow, for the pointer to it
  bool Arrow = false;    ///< Text is a pointer: members are written with `->`
  bool Repeats = false;  ///< the object may be an element of an array
  bool Indirect = false; ///< not the object but its address is stored here
  unsigned Distance = 0; ///< guesses made on the way
  bool FromTag = false;  ///< the alias tag alone gave the type
  const llvm::DILocalVariable *Variable =
      nullptr; ///< the record that vouches, for choosing among inlined frames
  const llvm::DILocation *Frame = nullptr;
};

/// A place seen through an access.
struct Reading {
  Place At;
  Landing Found;
  int Score = 0;
};

class PointerWalk {
public:
  PointerWalk(llvm::Function &F, TypeNames &Types);

  /// The most credible reading of \p Pointer, or nothing when nothing is known about it.
  std::optional<Reading> read(const llvm::Value *Pointer, const AccessShape &A);

  /// All beliefs about \p V, best first.
  llvm::ArrayRef<Place> places(const llvm::Value *V);

  /// How the source would write what \p R reads: `p->next`, `grid[].z`, `*p`.
  static std::string text(const Reading &R);

private:
  using Places = llvm::SmallVector<Place, 2>;

  Places find(const llvm::Value *V);
  void fromRecords(const llvm::Value *V, Places &Out);
  void fromAddressRecord(const llvm::DbgVariableRecord &R, const llvm::DIExpression *E, Places &Out);
  void fromValueRecord(const llvm::DbgVariableRecord &R, Places &Out);
  void fromGlobal(const llvm::GlobalVariable &G, Places &Out);
  void fromAlloca(const llvm::AllocaInst &A, Places &Out);
  void fromArgument(const llvm::Argument &A, Places &Out);
  void fromOffset(const llvm::GEPOperator &G, Places &Out);
  void fromLoad(const llvm::LoadInst &L, Places &Out);
  void fromCall(const llvm::CallBase &C, Places &Out);
  void fromPhi(const llvm::PHINode &N, Places &Out);
  void fromAggregate(const llvm::ExtractValueInst &E, Places &Out);
  void fromInteger(const llvm::Value *V, Places &Out);
  std::string callText(const llvm::CallBase &C, const llvm::DISubprogram *Callee);
  const llvm::DIType *returnType(const llvm::CallBase &C, const llvm::DISubprogram *&Callee);
  Reading weigh(const Place &P, const AccessShape &A) const;
  void first(llvm::ArrayRef<const llvm::Value *> Values, Places &Out);
  void borrow(const llvm::Value *From, Places &Out);
  int closeness(const Place &P, const llvm::Instruction *I) const;

  TypeNames &Types;
  const llvm::DataLayout &Layout;
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<llvm::DbgVariableRecord *, 2>> Records;
  llvm::DenseMap<const llvm::Value *, std::unique_ptr<Places>>
      Memo; ///< null while the value is being worked out
  unsigned Depth = 0;
};

} // namespace memlode
#endif
