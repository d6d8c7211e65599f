//===- StringCopies.h - library functions that allocate a copy ------------===//
#ifndef MEMLODE_INSTRUMENT_STRINGCOPIES_H
#define MEMLODE_INSTRUMENT_STRINGCOPIES_H

namespace llvm {
class Function;
class TargetLibraryInfo;
} // namespace llvm

namespace memlode {

/// Writes strdup and strndup out as what they are: an allocation, whose size the call itself does not show,
/// and a copy, which would be the library's and not be seen. Returns whether there was one.
bool openStringCopies(llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

} // namespace memlode
#endif
