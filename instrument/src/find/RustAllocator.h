//===- RustAllocator.h - what stands between Rust code and its allocator --===//
//
//   Vec::push … -> __rust_alloc -> __rdl_alloc   the standard library's: malloc
//                                  __rg_alloc    the program's #[global_allocator]
//
// rustc makes __rust_alloc and its kin for each program; they do nothing but
// pass on. (A program's own allocator takes their place in Rust 1.95; it is
// moved to where it was.) What they call is recorded. Inlined into bitcode, that call stands at
// the line that allocates; the copy that is left serves machine code, like that
// of the precompiled standard library. So each allocation is recorded once.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_RUSTALLOCATOR_H
#define MEMLODE_INSTRUMENT_RUSTALLOCATOR_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
} // namespace llvm

namespace memlode {

/// \p Name as in Rust's sources. Since Rust 1.87 the allocator's symbols have the mangled path of a
/// crate `__rustc`; behind its disambiguator comes the plain name with its length in front:
/// `_RNvCsbM2nZ_7___rustc12___rust_alloc`.
llvm::StringRef plainRustName(llvm::StringRef Name);

/// Marks functions that only pass on for inlining, and recorded ones against it. Runs before
/// anything is inlined.
bool openRustAllocator(llvm::Module &M);

} // namespace memlode
#endif
