//===- TypeNames.h - what an engineer calls a debug-info type -------------===//
//
// One name for one type: typedefs and cv-qualifiers are looked through, C tags
// carry no `struct`, C++ types are qualified with their namespaces. The class
// also finds a debug-info type from the two other names that a type has in a
// module: the one in alias tags ("arc", "_ZTS3arc") and the one of LLVM's own
// structure type ("%struct.arc").
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_TYPENAMES_H
#define MEMLODE_INSTRUMENT_TYPENAMES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"

#include <optional>
#include <string>

namespace memlode {

class TypeNames {
public:
  explicit TypeNames(llvm::Module &M);

  /// Looks through typedefs and cv-qualifiers. Null is `void`.
  static const llvm::DIType *strip(const llvm::DIType *T);

  /// The bytes of an object of the type; a typedef or qualifier has those of its base type.
  static uint64_t bytes(const llvm::DIType *T);

  /// Returns the type that a pointer or reference points to (null: `void`); nothing when \p T is neither.
  static std::optional<const llvm::DIType *> pointee(const llvm::DIType *T);
  static bool isReference(const llvm::DIType *T);

  /// The one name of the type. Lives as long as this object.
  llvm::StringRef name(const llvm::DIType *T);

  /// The composite type with this \p Name and \p Bytes, or null. Of several, the first.
  const llvm::DICompositeType *byName(llvm::StringRef Name, uint64_t Bytes) const;

  /// \p Name with the namespaces and classes it is declared in.
  std::string qualified(const llvm::DIScope *Scope, llvm::StringRef Name) {
    return scopePrefix(Scope, 0) + Name.str();
  }

  /// The structure that alias tags call \p Name, or null.
  const llvm::DICompositeType *byAliasName(llvm::StringRef Name);

  /// The structure that \p T was made from, or null when that is not certain.
  const llvm::DICompositeType *byStruct(const llvm::StructType *T);

private:
  using Candidates = llvm::SmallVector<const llvm::DICompositeType *, 1>;

  std::string spell(const llvm::DIType *T, unsigned Depth);
  std::string spellComposite(const llvm::DICompositeType *T, unsigned Depth);
  std::string spellFunction(const llvm::DISubroutineType *T, unsigned Depth);
  std::string scopePrefix(const llvm::DIScope *S, unsigned Depth);
  const llvm::DICompositeType *findAlias(llvm::StringRef Name);
  void indexQualifiedNames();

  const llvm::DataLayout &Layout;
  llvm::SmallVector<const llvm::DICompositeType *, 0> Composites;
  llvm::DenseMap<const llvm::DIType *, const llvm::DIDerivedType *> TypedefOf; ///< of unnamed types
  llvm::StringMap<Candidates> ByName;      ///< unqualified, as C's alias tags say it
  llvm::StringMap<Candidates> ByQualified; ///< with namespaces, spaces before `>` dropped; filled on demand
  llvm::StringMap<Candidates> ByTemplate;  ///< ByQualified without the last template arguments
  llvm::StringMap<const llvm::DICompositeType *> ByIdentifier;
  llvm::StringMap<const llvm::DICompositeType *> AliasMemo;
  llvm::DenseMap<const llvm::StructType *, const llvm::DICompositeType *> StructMemo;
  llvm::BumpPtrAllocator Memory;
  llvm::StringSaver Saver{Memory};
  llvm::DenseMap<const llvm::DIType *, llvm::StringRef> Names;
  llvm::StringMap<Candidates> Named; ///< by what name() said
  bool QualifiedIndexed = false;
};

} // namespace memlode
#endif
