//===- Allocators.h - which functions make and end objects ----------------===//
//
// The usual ones are built in; a file adds a program's own. One line a function:
//
//   # name       count size base     argument positions from 0; -1: there is none
//   pool_alloc   -1    1    -1       base -1: the return value
//   grab         0     1    2        base 2: *argument2 holds it after the call
//   realloc pool_grow 0 2            name, old base, new size
//   free    pool_free 1              name, base
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_ALLOCATORS_H
#define MEMLODE_INSTRUMENT_ALLOCATORS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/Error.h"

namespace memlode {

/// A function's effect on the set of live objects. Positions count arguments from 0; None is absent.
struct Allocator {
  static constexpr int None = -1;
  enum class Act { Allocate, Resize, Free, Unmap };
  enum class Failure { Null, MapFailed, NonZeroStatus };

  Act Does = Act::Allocate;
  int Count = None; ///< elements; the block is count * size bytes
  int Size = None;  ///< bytes of the block, or of one element when there is a count
  int Base =
      None; ///< Allocate: where the base is stored, None for the return value. Else: the object that ends
  Failure Fails = Failure::Null;
  /// Fortran's: Base is the position of a descriptor (`Fortran.h`), which also has the size.
  bool Described = false;
  /// The block holds a string, whose length is its size, unless the function is the program's own.
  bool Text = false;
};

class Table;

class Allocators {
public:
  Allocators();

  /// Adds the functions that the file at \p Path names.
  llvm::Error addFile(llvm::StringRef Path);

  /// Returns the allocator that \p Call is, or null when it neither allocates nor frees. \p Mismatch is set
  /// when the function is known but called with other arguments than its description needs.
  const Allocator *find(const llvm::CallBase &Call, bool &Mismatch) const;

  /// Returns whether the file named \p Name: such functions must not be inlined away before the pass sees the
  /// calls.
  bool isFromFile(llvm::StringRef Name) const { return FromFile.contains(Name); }
  bool hasFile() const { return !FromFile.empty(); }
  /// Returns the names of the file in the order of the alphabet.
  llvm::SmallVector<llvm::StringRef, 8> fromFile() const;

  void beginModule() { Called.clear(); }
  /// Writes down each name of the file, and whether the module calls such a function.
  void tell(Table &Into) const;

private:
  llvm::Error addLine(llvm::StringRef Line);

  llvm::StringMap<Allocator> BuiltIn;
  llvm::StringMap<Allocator> FromFile;
  std::string Path;
  /// Names by which the file found calls in the current module.
  mutable llvm::StringSet<> Called;
};

} // namespace memlode
#endif
