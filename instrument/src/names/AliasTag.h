//===- AliasTag.h - reading TBAA tags -------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_ALIASTAG_H
#define MEMLODE_INSTRUMENT_ALIASTAG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Instruction.h"

#include <string>

namespace memlode {

/// The alias tag of an access, `{record, scalar, offset}`: which member of which record type the source
/// expression named. Front ends leave it out for unions, bit-fields, copies, and languages without the rule.
struct AliasTag {
  llvm::StringRef Record; ///< "arc", "_ZTS3arc"; empty when the tag names no member
  llvm::StringRef Scalar; ///< "int", "any pointer", "p1 _ZTS3arc", "vtable pointer"
  uint64_t Offset = 0;    ///< in bytes, of the scalar in the record

  static AliasTag of(const llvm::Instruction &I);

  bool isMember() const { return !Record.empty(); }
  bool isVTable() const { return Scalar == "vtable pointer"; }

  /// The scalar as a C type (`void *`, `arc *`); empty when the tag does not have it ("omnipotent
  /// char").
  std::string scalarType() const;
};

} // namespace memlode
#endif
