//===- MemberUses.h - where the addresses of members go -------------------===//
//
// Whoever wants to move a member has to know whether anybody else holds its
// address, and whether the record is looked at as something else. Both are seen
// before optimisation, while the structure types of C, C++ and Fortran are in
// the code: Rust has none.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_MEMBERUSES_H
#define MEMLODE_INSTRUMENT_MEMBERUSES_H

#include "names/TypeNames.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace memlode {

class MemberUses {
public:
  /// Looks at \p F, which is as the front end made it.
  void remember(const llvm::Function &F, TypeNames &Names);

  /// MEMLODE_TYPE_FLAG_* of the uses of objects of \p Record.
  unsigned flagsOf(const llvm::DICompositeType *Record) const;

  /// MEMLODE_MEMBER_FLAG_* of the uses of the address of the member \p Offset bytes into \p Record.
  unsigned flagsOf(const llvm::DICompositeType *Record, uint64_t Offset) const;

private:
  void escape(const llvm::GetElementPtrInst &Member, TypeNames &Names);
  void look(const llvm::GetElementPtrInst &Member, TypeNames &Names);

  llvm::DenseMap<const llvm::DICompositeType *, unsigned> OfRecords;
  llvm::DenseMap<std::pair<const llvm::DICompositeType *, uint64_t>, unsigned> OfMembers;
  llvm::DenseMap<const llvm::Value *, const llvm::DICompositeType *>
      PointsTo; ///< slots of pointers to records
};

} // namespace memlode
#endif
