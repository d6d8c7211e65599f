//===- LibcAccesses.h - what functions of libc look at --------------------===//
//
// Strings are searched and compared in code that was not compiled with us. What
// it reads and writes is defined by ISO C, so it is recorded where it is called:
// the end of a string is found as the function finds it, from its result or by
// asking the recorder. Conversions, locales and stdio are left out.
//
// A function of such a name may be the program's own. Then it records what it
// does, and its callers must not: its unit defines `__memlode_own_NAME` as
// another name of it, which callers refer to weakly and test.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_LIBCACCESSES_H
#define MEMLODE_INSTRUMENT_LIBCACCESSES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/AtomicOrdering.h"

#include <optional>

namespace memlode {

/// One range of memory that a function reads or writes. A and B are positions of arguments.
struct LibraryAccess {
  static constexpr int Result = -1;
  static constexpr int None = -2;

  enum class Extent {
    Bytes,    ///< argument A
    Pairs,    ///< the even part of argument A, if that is positive
    Product,  ///< arguments A and B
    Fixed,    ///< A itself, unless the pointer is null
    String,   ///< the string at argument A, with its end; at most argument B
    Filled,   ///< the same, and an end behind them in any case
    Compared, ///< of the strings at the first two arguments, up to their difference; at most argument A
    Folded,   ///< the same, whatever the case of letters

    // Known from the result.
    Counted, ///< one more than the result; at most argument A
    Found,  ///< up to the character that the result points at, or a string as argument B; if that is nothing,
            ///< the whole string
    Within, ///< the same, or argument B bytes; if that is nothing, argument A
    Back,   ///< from what the result points at to the end of argument A's bytes; if that is nothing, all
    Stopped,         ///< of the bytes of argument A, those before the result in the first argument
    Element,         ///< argument A, unless the result is nothing
    BytesUnlessDone, ///< argument A, if the result is 0
    FixedUnlessDone  ///< A itself, if the result is 0
  };

  unsigned Kind; ///< MEMLODE_KIND_*
  int Pointer;   ///< position of an argument, or Result
  Extent Is;     ///< how many bytes
  int A = None, B = None;
  bool Appended = false;    ///< written where the string at the pointer ends
  bool Approximate = false; ///< it stands for accesses that are the library's own affair
  unsigned Unit = 1;        ///< bytes of a character, of which A and B are numbers
  int Order = None;         ///< of an atomic operation: the argument that says what it promises
  int OrderElse = None;     ///< the same, should it not be done

  bool isAtomic() const { return Order != None; }
  bool isKnownBehind() const { return Is >= Extent::Counted || Pointer == Result; }
};

/// Returns the accesses of the function called by \p Call, by its name; nothing if the module defines it.
llvm::ArrayRef<LibraryAccess> libraryAccesses(const llvm::CallBase &Call);

/// An atomic operation that a function of a library carries out.
struct LibraryAtomic {
  llvm::Value *Object;
  unsigned Kind;                      ///< MEMLODE_KIND_*
  llvm::AtomicOrdering Order, OrElse; ///< as far as the arguments tell; else sequentially consistent
};

/// Returns the atomic operation that the function called by \p Call is.
std::optional<LibraryAtomic> libraryAtomic(const llvm::CallBase &Call);

/// Returns whether \p Call's accesses, or some of them, are known behind it only.
bool isKnownBehind(const llvm::CallBase &Call);

/// The beginning of an access of a library function, and its bytes.
struct LibraryRange {
  llvm::Value *Pointer = nullptr;
  llvm::Value *Bytes = nullptr;
  llvm::Instruction *Behind = nullptr; ///< in front of which they are known, if that is behind the call
};

/// The ranges that one function's calls access.
class LibraryRanges {
public:
  /// Computes them in \p F outside the blocks of \p Dormant. Whether it added code.
  bool compute(llvm::Function &F, const llvm::DenseSet<const llvm::BasicBlock *> &Dormant);

  LibraryRange of(const llvm::CallBase &Call, unsigned Number) const { return Known.lookup({&Call, Number}); }

private:
  llvm::DenseMap<std::pair<const llvm::CallBase *, unsigned>, LibraryRange> Known;
};

/// An address that is not null where the program itself defines the function that \p Call calls by its name.
llvm::Constant *ownDefinition(const llvm::CallBase &Call);

/// The bytes of the string at \p Start, with its end; 0 if \p Own is not null, or there is no string.
llvm::Value *stringBytes(llvm::IRBuilder<> &B, llvm::Value *Own, llvm::Value *Start);

/// Gives functions of \p M that are called like one of the library's their second names.
void markOwnDefinitions(llvm::Module &M);

} // namespace memlode
#endif
