//===- MemberPath.h - which member of an object lies at an offset ---------===//
//
// Pure geometry over debug-info types: given an object's type, the offset and
// length of an access in it, and the strides of the variable indices that are
// part of the address, find the members it touches.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_MEMBERPATH_H
#define MEMLODE_INSTRUMENT_MEMBERPATH_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"

#include <optional>
#include <string>

namespace memlode {

/// The kind of value that the machine moves; it distinguishes union members of one size.
enum class ValueKind { Unknown, Integer, Float, Pointer };

/// The code's use of a pointer that it reads or writes; it distinguishes union members.
struct ValueUse {
  const llvm::DIType *Pointee = nullptr; ///< a variable, parameter or result of this type holds it
  bool Dereferenced = false, Called = false;
};

/// A question about an object.
struct Probe {
  int64_t Offset = 0;                     ///< constant part of the address, from the object's start
  llvm::SmallVector<uint64_t, 2> Strides; ///< bytes by which each variable index moves the address
  llvm::SmallVector<int64_t, 1> Choices;  ///< distances from Offset to other places the access may go to
  bool Repeats = false;                   ///< the object may be one of an array (it was reached by a pointer)
  uint64_t Bytes = 0;                     ///< of the whole access; 0 unknown
  uint64_t ElementBytes = 0;              ///< of one lane; 0 for block copies
  ValueKind Kind = ValueKind::Unknown;
  /// The bits that matter of the storage unit of a bit-field, counted from Offset; 0 bits: all.
  unsigned FirstBit = 0, Bits = 0;
  /// Member that an alias tag names, or null: (record, offset in it).
  const llvm::DICompositeType *TagRecord = nullptr;
  uint64_t TagOffset = 0;
  ValueUse Value;
  /// A read, or a constant that is written: it may be the discriminant of a tagged union.
  bool MayTellVariants = false;
  /// Stop at the part of this type: its place is wanted, not its contents.
  const llvm::DICompositeType *Part = nullptr;
};

/// The result.
struct Landing {
  const llvm::DIType *Owner =
      nullptr;        ///< the type that Member starts in: the object's, its element's, or a base class's
  std::string Member; ///< empty: the object itself
  const llvm::DIType *Leaf = nullptr;                  ///< the innermost type reached; null: unknown
  llvm::SmallVector<const llvm::DIType *, 1> Pointers; ///< the pointer types that may stand there
  const llvm::DIType *Element =
      nullptr;            ///< what Rust's vectors, whose buffers are bytes, keep behind such a pointer
  bool Repeated = false;  ///< the object itself is one of an array
  bool Plain = false;     ///< a member of a structure, through no array or union
  bool Ambiguous = false; ///< a union's members that look alike
  bool Tagged = false;    ///< the alias tag's member is the one at this place
  bool Doubtful = false;  ///< strides that no array explains, or an offset outside the object
  bool Fits = false;      ///< Leaf has the size and kind of the access

  /// Nothing speaks against it.
  bool isFirm() const { return Fits && !Doubtful && !Ambiguous; }
};

Landing land(const llvm::DIType *Object, const Probe &Q);

/// True when an object of type \p Inner starts where \p Q points in \p Object.
bool holdsAt(const llvm::DIType *Object, const Probe &Q, const llvm::DICompositeType *Inner);

/// The path to the pointer to its buffer in Rust's `Vec`.
inline constexpr llvm::StringLiteral RustBuffer = "buf.inner.ptr.pointer.pointer";

/// A pointer or reference that is part of an object.
struct PointerPart {
  const llvm::DIType *Pointer; ///< its type
  const llvm::DIType *To;      ///< what it leads to; null: `void`
  /// Path to it, empty when nothing else is in the object (iterators, smart pointers) or it is a vector's
  /// buffer.
  std::string Member;
};

/// The pointer or reference \p Offset bytes into \p Object, which may be that pointer itself.
std::optional<PointerPart> pointerIn(const llvm::DIType *Object, uint64_t Offset);

} // namespace memlode
#endif
