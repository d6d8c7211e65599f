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

#include "names/AccessShape.h"
#include "names/DebugRecords.h"
#include "names/MemberPath.h"
#include "names/TypeNames.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

#include <memory>

namespace memlode {

/// A place seen through an access.
struct Reading {
  Place At;
  Landing Found;
  int Score = 0;
};

/// Returns the question to ask of the object that \p P points into.
Probe probe(const Place &P);

class PointerWalk {
public:
  /// \p AsWritten: no optimisation has rewritten the addresses of \p F yet.
  PointerWalk(llvm::Function &F, TypeNames &Types, bool AsWritten);

  /// The most credible reading of \p Pointer, or nothing when nothing is known about it.
  std::optional<Reading> read(const llvm::Value *Pointer, const AccessShape &A);

  /// The record that has at \p Pointer a member in which \p Part lies, with nothing guessed; nothing if no
  /// such record is believed in.
  std::optional<Reading> holder(const llvm::Value *Pointer, const AccessShape &A, llvm::StringRef Part);

  /// All beliefs about \p V, best first.
  llvm::ArrayRef<Place> places(const llvm::Value *V);

  /// The scalar type that the source gives to the value which the access moves, or null.
  const llvm::DIType *typeOfValue(const AccessShape &A) const;

  /// Returns the source text of the reading \p R: `p->next`, `grid[].z`, `*p`.
  static std::string text(const Reading &R);

private:
  using Places = llvm::SmallVector<Place, 2>;

  void find(const llvm::Value *V, Places &Out);
  void fromGlobal(const llvm::GlobalVariable &G, Places &Out);
  void fromAlloca(const llvm::AllocaInst &A, Places &Out);
  void fromArgument(const llvm::Argument &A, Places &Out);
  void fromOffset(const llvm::GEPOperator &G, Places &Out);
  void fromLoad(const llvm::LoadInst &L, Places &Out);
  void fromCall(const llvm::CallBase &C, Places &Out);
  void fromPhi(const llvm::PHINode &N, Places &Out);
  void fromAggregate(const llvm::ExtractValueInst &E, Places &Out);
  void fromInteger(const llvm::Value *V, Places &Out);
  const llvm::DIType *passedAs(const llvm::AllocaInst &Slot);
  std::string partText(const llvm::Value *V, const llvm::DICompositeType *Class);
  std::string callText(const llvm::CallBase &C, const llvm::DISubprogram *Callee);
  const llvm::DIType *returnType(const llvm::CallBase &C, const llvm::DISubprogram *&Callee);
  bool sameScalar(const AliasTag &Tag, const llvm::DIType *Leaf) const;
  Reading weigh(const Place &P, const AccessShape &A) const;
  void first(llvm::ArrayRef<const llvm::Value *> Values, Places &Out);
  void borrow(const llvm::Value *From, Places &Out);
  int closeness(const Place &P, const llvm::Instruction *I) const;

  bool AsWritten, Fortran;
  TypeNames &Types;
  const llvm::DataLayout &Layout;
  DebugRecords Records;
  llvm::DenseMap<const llvm::Value *, std::unique_ptr<Places>> Memo;
  unsigned Depth = 0;
};

} // namespace memlode
#endif
