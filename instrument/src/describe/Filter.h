//===- Filter.h - which events the user does not want ---------------------===//
//
// A file of rules, read top to bottom; of all rules that match an event the last
// decides, and what no rule matches is recorded:
//
//   exclude                            # no accesses at all …
//   include function=price_*           # … but those that price_… makes
//   exclude type=Config kind=load      # not its loads of Config
//   exclude kind=frames instructions<20
//
// The syntax in full is in README.md.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_FILTER_H
#define MEMLODE_INSTRUMENT_FILTER_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/StringSaver.h"

#include <optional>
#include <string>
#include <vector>

namespace memlode {

/// An event as rules match it. Each event is of exactly one kind; the value of an access is a
/// separate event.
struct FilterEvent {
  enum Kind : unsigned {
    Load = 1,
    Store = 2,
    Atomic = 4,
    Range = 8, ///< either side of a memcpy, memset and their relatives, structure copies included
    Alloc = 16,
    Frames = 32,
    Values = 64, ///< what an access of any of the first three kinds loads or stores
    Accesses = Load | Store | Atomic | Range,
    All = Accesses | Alloc | Frames
  };

  Kind Is = Load;
  const llvm::Function *Holder = nullptr;     ///< whose code holds it
  unsigned Instructions = 0;                  ///< of the holder, before recording is added
  const llvm::DISubprogram *Source = nullptr; ///< whose text holds it; null when that is not known
  llvm::StringRef Type;                       ///< as in the site table; empty when it is not known
};

class Table;

class Filter {
public:
  /// Adds the rules of the file at \p Path.
  llvm::Error addFile(llvm::StringRef Path);

  bool empty() const { return Rules.empty(); }

  /// Forgets a module that may be gone.
  void beginModule() {
    Places.clear();
    Matched.clear();
    Matched.resize(Rules.size());
  }
  /// Writes down each rule, and whether it matched an event of the module.
  void tell(Table &Into) const;

  /// Line of the rule that leaves \p E out; 0 when it is to be recorded.
  unsigned leavesOut(const FilterEvent &E);

  /// True if values are recorded that no rule speaks of.
  bool AllValues = false;
  bool mayTakeValues() const;
  /// Returns whether the value of \p E, of that kind, is to be recorded.
  bool takesValue(const FilterEvent &E);

  /// The file, for remarks.
  llvm::StringRef path() const { return Path; }

private:
  struct Rule {
    unsigned Line = 0;
    std::string Text;
    bool Records = true;
    unsigned Kinds = FilterEvent::Accesses;
    std::optional<unsigned> InstructionsBelow;
    std::optional<llvm::GlobPattern> Function;
    std::optional<llvm::GlobPattern> File;
    std::optional<llvm::GlobPattern> Type;
  };

  llvm::Error addLine(llvm::StringRef Text, unsigned Line);
  llvm::Error addCondition(Rule &R, llvm::StringRef Word);
  llvm::Error glob(std::optional<llvm::GlobPattern> &Into, llvm::StringRef Key, llvm::StringRef Pattern);
  const llvm::BitVector &placesOf(const FilterEvent &E);
  /// The last rule that matches \p E, or null.
  const Rule *decides(const FilterEvent &E);
  static bool matches(const Rule &R, const FilterEvent &E);

  std::string Path;
  std::vector<Rule> Rules;

  // A pattern refers to its text.
  llvm::BumpPtrAllocator Memory;
  llvm::StringSaver Texts{Memory};

  /// For a function of the current module, the rules whose `function` and `file` it satisfies.
  llvm::DenseMap<const void *, llvm::BitVector> Places;
  /// Rules that matched an event of the current module, whether or not a later one decided.
  llvm::BitVector Matched;
};

} // namespace memlode
#endif
