//===- Describer.h - what the site table says of an access ----------------===//
//
// The second step: joins an access with its name and files both as a site,
// unless the user's filter leaves it out.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_DESCRIBER_H
#define MEMLODE_INSTRUMENT_DESCRIBER_H

#include "describe/Filter.h"
#include "describe/SiteTable.h"
#include "find/Allocators.h"
#include "find/Finder.h"
#include "find/LibcBlocks.h"
#include "names/Names.h"

#include "llvm/ADT/DenseMap.h"

namespace memlode {

/// The site of a recorded event, or the reason why it is not recorded.
struct Verdict {
  uint32_t Site = 0;
  unsigned LeftOutBy = 0; ///< line of the filter file
  bool Value = false;     ///< whether what the access moves is recorded, too

  explicit operator bool() const { return LeftOutBy == 0; }
};

/// Describes the events of one function.
class Describer {
public:
  Describer(NameBook &Names, Table &Sites, Filter &Wanted, llvm::Function &F);

  /// Takes the names of everything that \p Accesses and \p Functions find, and the origins of
  /// addresses, before the function is changed: where two versions of a value have been joined, it
  /// is harder to find what a pointer points to.
  void learn(const Finder &Accesses, const Allocators &Functions, const LibcBlocks &Blocks);

  Verdict access(const Access &A);
  /// Stores that were made to pass arguments to the function.
  llvm::ArrayRef<Access> parameters() const { return Parameters; }
  /// A call that makes an object.
  Verdict allocation(llvm::CallBase &Call);
  /// Blocks of the kind \p Number that \p Call says are made.
  Verdict block(llvm::CallBase &Call, unsigned Number);
  /// A call that ends one.
  Verdict release(llvm::CallBase &Call);
  /// Counts something of the function that is not recorded, by MEMLODE_LEFT_OUT_*.
  void leaveOut(uint8_t Reason) { Sites.leaveOut(Reason); }
  /// Returns whether the value of an access of the function is recorded.
  bool takesValues() const { return Values; }

  /// The function's entries and exits; they have no site.
  Verdict frames();

  /// "…:12", where line 12 of the filter file leaves an event out.
  std::string rule(const Verdict &V) const;

private:
  struct Learnt {
    Name Named;
    unsigned Flags = 0; ///< MEMLODE_FLAG_* of what the address depends on
  };

  Name nameOf(llvm::CallBase &Call, const BlockReport &Told, bool IsInner);
  Verdict site(FilterEvent::Kind Kind, const Name &N, SiteEntry Entry);
  unsigned leftOutBy(FilterEvent::Kind Kind, const llvm::DISubprogram *Source, llvm::StringRef Type);
  bool takesValue(const Access &A, const Name &N);
  /// The function whose text contains the named access.
  const llvm::DISubprogram *sourceOf(const Name &N) const;

  NameBook &Names;
  Table &Sites;
  Filter &Wanted;
  llvm::Function &F;
  unsigned Instructions;
  bool Values = false;
  llvm::SmallVector<Access, 2> Parameters;
  llvm::DenseMap<std::pair<const llvm::Instruction *, unsigned>, Learnt> Known; ///< by instruction and number
};

} // namespace memlode
#endif
