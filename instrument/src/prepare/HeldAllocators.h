//===- HeldAllocators.h - allocators that a program calls by pointer ------===//
//
//   hooks.get(n)   ->   if (hooks.get == &malloc) malloc(n); else hooks.get(n);
//
// Tables of hooks, arguments and members hold malloc, free and their kin. A call
// through a pointer of such a signature asks first whether the pointer is one of
// them; then a call by name stands there, which is recorded like any other. The pointer
// itself, which a program can compare, stays as it is.
//
// `std::pmr` calls its resources by their tables of virtual functions, most of which
// lie in libstdc++: those calls are marked before anything is inlined.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_HELDALLOCATORS_H
#define MEMLODE_INSTRUMENT_HELDALLOCATORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/PassManager.h"

namespace memlode {

/// Gives calls by pointer in \p Functions of \p M that may be calls of an allocator a test for it, and a
/// call by name behind the test. \p Own are allocators that the user named.
void openHeldAllocators(llvm::Module &M, llvm::ArrayRef<llvm::Function *> Functions,
                        llvm::ArrayRef<llvm::StringRef> Own, llvm::FunctionAnalysisManager &FAM);

/// The attribute of a call that a memory resource makes for its caller; its value is the caller's name.
constexpr llvm::StringLiteral ResourceCall = "memlode-resource";

/// Marks the calls that `std::pmr::memory_resource` makes for its callers: before anything is
/// inlined, or else by the lines of debug information.
bool markResourceCalls(llvm::Module &M);

} // namespace memlode
#endif
