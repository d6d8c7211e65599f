//===- TypeBook.h - what types are made of --------------------------------===//
//
// The section `types` of a site table (format/SPEC.md §2.3): every member of
// the records that the unit's sites and variables are of, so that an address in
// an object of known type has a member whatever instruction touches it.
//
// What is contained comes before what contains it, so that no reader can run in
// circles; what a pointer leads to is known by its name only.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_TYPEBOOK_H
#define MEMLODE_INSTRUMENT_TYPEBOOK_H

#include "describe/SiteTable.h"
#include "names/MemberUses.h"
#include "names/TypeNames.h"

#include "llvm/ADT/DenseMap.h"

namespace memlode {

class TypeBook {
public:
  TypeBook(TypeNames &Names, const MemberUses &Uses, Table &Into) : Names(Names), Uses(Uses), Into(Into) {}

  /// Describes the records among the table's types and the types of the variables of \p M with static
  /// storage, and adds the section, unless there are none.
  void write(const llvm::Module &M);

private:
  /// Index + 1 of the description of \p T; 0 if it cannot be described.
  uint32_t describe(const llvm::DIType *T, unsigned Depth = 0);
  uint32_t add(const llvm::DIType *T, unsigned Depth);
  void record(const llvm::DICompositeType *R, TableList::Bytes &Out, unsigned Depth);
  void variants(const llvm::DICompositeType *V, TableList::Bytes &Out, unsigned Depth);
  void array(const llvm::DICompositeType *A, TableList::Bytes &Out, unsigned Depth);

  TypeNames &Names;
  const MemberUses &Uses;
  Table &Into;
  TableList Types;
  llvm::DenseMap<const llvm::DIType *, uint32_t> Known; ///< index + 1; 0 while it is being described
};

} // namespace memlode
#endif
