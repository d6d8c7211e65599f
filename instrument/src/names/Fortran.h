//===- Fortran.h - what flang's code and debug info are made of -----------===//
//
// Allocatable, pointer and assumed-shape arrays are known by a descriptor: the
// address of the elements first, then what they are, then a lower bound, an
// extent and a stride for each dimension. In debug info such an array says
// where its elements are by an expression (`dataLocation`).
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_FORTRAN_H
#define MEMLODE_INSTRUMENT_FORTRAN_H

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace memlode {

/// Returns whether \p F was written in Fortran.
bool isFortran(const llvm::Function &F);

/// Returns whether an object of the array type \p A is a descriptor, its elements being elsewhere.
bool isDescriptor(const llvm::DICompositeType *A);

/// The bytes of such a descriptor, without what flang appends for arrays of derived types.
int64_t descriptorBytes(const llvm::DICompositeType *A);

/// The type of the descriptor's first word: a pointer to the elements.
const llvm::DIType *descriptorPointer(const llvm::DICompositeType *A);

/// The member name of that word.
inline constexpr llvm::StringLiteral DescriptorData = "{data}";

/// Returns the name of the part that stands \p Offset bytes into a descriptor.
llvm::StringRef descriptorPart(int64_t Offset);

/// A function of \p M that returns the bytes of the elements of an array, given its descriptor.
llvm::Function *describedBytes(llvm::Module &M);

/// Returns the descriptor that \p Slot holds a copy of, or null: flang copies a descriptor before it reads
/// it.
const llvm::Value *copiedInto(const llvm::AllocaInst &Slot);

/// `_QMshapesTgrid` → `grid`; empty when flang made no derived type of that name.
llvm::StringRef derivedTypeName(llvm::StringRef Mangled);

} // namespace memlode
#endif
