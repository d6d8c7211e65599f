//===- Names.h - which variable, type and member an access touches --------===//
//
// Names are cheap to find before optimisation and often gone after it, so the
// pass looks twice: NameBook::remember runs on the module as the front end made
// it and files what it finds under (scope, line, column, direction); NameBook::
// nameOf runs on the optimised module, takes the filed name when it is unique
// and falls back to debug records and alias tags (evidence.* in trace.toml).
//
// This half knows IR and debug info. It knows nothing of tables or buffers.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_NAMES_H
#define MEMLODE_INSTRUMENT_NAMES_H

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace memlode {

class MemberUses;
class TypeNames;

/// The names of one access. Empty strings mean "not found".
struct Name {
  std::string Variable;
  std::string Type; ///< without typedefs and cv-qualifiers
  uint64_t TypeBytes = 0;
  std::string Member;                         ///< `pos.x`, `grid[].z`; candidates of a union joined by `|`
  const llvm::DILocation *Location = nullptr; ///< innermost; null when the function has no debug info
  bool Approximate = false;                   ///< Location is a neighbour's
  unsigned Evidence = 0;                      ///< MEMLODE_EVIDENCE_*
};

/// Direction of an access: the load and the store of `a[i] += x` share a line and column.
enum class Direction { Read, Write, Both };

/// Names are computed for one function at a time and remembered while its accesses are looked up:
/// take all names of a function before changing it, or call forget() once it has been changed.
class NameBook {
public:
  NameBook();
  ~NameBook();

  /// Analysis only: files the names of every access of the unoptimised module.
  void remember(llvm::Module &M);

  /// Names the memory that \p I reaches through \p Pointer (a load's or store's pointer operand, either
  /// side of a memcpy, one lane of a gather or its whole vector of pointers). \p Bytes is 0 when the length
  /// is not constant.
  Name nameOf(llvm::Instruction &I, llvm::Value *Pointer, Direction D, uint64_t Bytes);

  /// The type of the elements that the allocation \p Call makes, from the use of its result
  /// (`heapallocsite`, the variable or member it is assigned to); Variable and Member are its
  /// destination.
  Name nameOfAllocation(llvm::CallBase &Call);

  /// Names the block whose address \p Call has stored at \p Place; \p IsInner: blocks to which that one's
  /// elements lead.
  Name nameOfBlock(llvm::CallBase &Call, llvm::Value &Place, bool IsInner);

  /// The names of the types of \p M, the current module.
  TypeNames &types(llvm::Module &M);
  /// Returns the uses of members' addresses in the unoptimised module.
  const MemberUses &memberUses() const;

  /// Forgets the results for the last function. Those of remember() stay.
  void forget();

private:
  struct Impl;
  std::unique_ptr<Impl> P;
};

} // namespace memlode
#endif
