//===- SiteTable.h - the site table of one translation unit ---------------===//
//
// Collects strings, types, locations, sites and segments, each once, and writes
// them as format/SPEC.md §2 says. Knows debug-info nodes only as things that
// have a name, a file and a line.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_SITETABLE_H
#define MEMLODE_INSTRUMENT_SITETABLE_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"

#include <map>
#include <string>
#include <vector>

namespace memlode {

/// One of the table's lists: its entries, encoded, each kept once.
class TableList {
public:
  using Bytes = llvm::SmallString<32>;

  /// Index of the entry \p Encoded, which is added if new.
  uint32_t add(llvm::StringRef Encoded);
  /// Adds an entry that may equal another.
  uint32_t append(llvm::StringRef Encoded);
  void write(std::string &Out) const;
  uint32_t size() const { return Count; }

private:
  llvm::StringMap<uint32_t> Index;
  std::string Entries;
  uint32_t Count = 0;
};

/// Appends \p Value as LEB128.
void putVarint(llvm::SmallVectorImpl<char> &Out, uint64_t Value);
/// Appends \p Value as LEB128 of its zigzag form.
void putSigned(llvm::SmallVectorImpl<char> &Out, int64_t Value);

/// The table's entry for one site. Indices + 1; 0 is "none".
struct SiteEntry {
  uint8_t Kind = 0;
  uint8_t Evidence = 0;
  uint32_t Flags = 0;
  uint64_t Bytes = 0;
  uint32_t Location = 0;
  uint32_t Variable = 0;
  uint32_t Type = 0;
  uint32_t Member = 0;
};

/// `outer::inner::name`, as in the source.
std::string qualifiedName(const llvm::DISubprogram &Subprogram);

class Table {
public:
  /// Sets MEMLODE_TABLE_FLAG_* in the header.
  void mark(uint16_t Flag) { Marks |= Flag; }
  uint16_t marks() const { return Marks; }

  uint32_t string(llvm::StringRef Text);
  uint32_t type(llvm::StringRef Name, uint64_t Bytes);
  /// Name and bytes of each type so far, in the order of their indices.
  llvm::ArrayRef<std::pair<std::string, uint64_t>> types() const { return TypesTold; }
  uint32_t location(const llvm::DILocation &Location);
  /// The function whose code \p F is; \p F may lack debug info.
  uint32_t function(const llvm::Function &F);
  /// The name by which the function of \p F's code is linked, as a string.
  uint32_t linkageName(const llvm::Function &F);
  uint32_t site(const SiteEntry &Site);
  /// A new segment. \p Ops are \p OpCount encoded ops.
  uint32_t segment(uint32_t Function, uint32_t OpCount, llvm::StringRef Ops);

  /// Counts something that touches memory and is not recorded, by MEMLODE_LEFT_OUT_*.
  void leaveOut(uint8_t Reason) { ++LeftOut[Reason]; }
  bool leavesOut() const { return !LeftOut.empty(); }
  /// Adds a rule of the user, and whether the unit has any event that it matches.
  void asked(llvm::StringRef Text, bool Found);
  bool hasAsked() const { return Asked.size() != 0; }
  /// Sets the directory in which the unit is compiled.
  void compiledIn(llvm::StringRef Directory) { CompiledIn = string(Directory) + 1; }

  /// Adds a section (MEMLODE_TABLE_SECTION_*, SPEC.md §5.1) with the given contents. One of each kind at
  /// most.
  void section(uint32_t What, llvm::StringRef Contents);

  bool empty() const { return Segments.size() == 0; }
  /// Header and payload, once.
  std::string write();

private:
  uint32_t file(const llvm::DIFile &File);
  /// \p Subprogram as the owner of text in \p File: its own, or one that is included inside it.
  uint32_t function(const llvm::DISubprogram &Subprogram, const llvm::DIFile *File);

  uint16_t Marks = 0;
  TableList Strings, Files, Functions, Locations, Types, Sites, Segments;
  std::vector<std::pair<std::string, uint64_t>> TypesTold;
  llvm::SmallString<0> Sections; ///< encoded
  std::map<uint8_t, uint64_t> LeftOut;
  TableList Asked;
  uint32_t CompiledIn = 0; ///< a string, or 0
  TableList Checksums;     ///< of files
  TableList Untyped;       ///< functions that return memory of no type
  llvm::DenseMap<const llvm::DILocation *, uint32_t> LocationOf;
  llvm::DenseMap<std::pair<const llvm::DISubprogram *, const llvm::DIFile *>, uint32_t> FunctionOf;
};

} // namespace memlode
#endif
