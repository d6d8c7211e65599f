//===- MemberPath.cpp -----------------------------------------------------===//
#include "names/MemberPath.h"
#include "names/Fortran.h"
#include "names/TypeNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxMemberDepth = 24;
constexpr unsigned MaxVisits = 2000; ///< per question; deep unions of unions would explode otherwise
constexpr unsigned MaxNames = 8;     ///< more members than this in one access are named by their owner

int64_t floorMod(int64_t A, int64_t B) { return ((A % B) + B) % B; }

const DICompositeType *asRecord(const DIType *T) {
  auto *C = dyn_cast_or_null<DICompositeType>(T);
  if (!C)
    return nullptr;
  switch (C->getTag()) {
  case dwarf::DW_TAG_structure_type:
  case dwarf::DW_TAG_class_type:
  case dwarf::DW_TAG_union_type:
  case dwarf::DW_TAG_variant_part: // Rust's and Pascal's tagged unions
    return C;
  default:
    return nullptr;
  }
}

const DICompositeType *asArray(const DIType *T) {
  auto *C = dyn_cast_or_null<DICompositeType>(T);
  return C && C->getTag() == dwarf::DW_TAG_array_type ? C : nullptr;
}

bool isUnion(const DICompositeType *T) {
  return T->getTag() == dwarf::DW_TAG_union_type || T->getTag() == dwarf::DW_TAG_variant_part;
}

bool sameRecord(const DICompositeType *A, const DICompositeType *B) {
  if (A == B)
    return true;
  if (!A || !B || A->getTag() != B->getTag() || A->getSizeInBits() != B->getSizeInBits())
    return false;
  if (!A->getIdentifier().empty() || !B->getIdentifier().empty())
    return A->getIdentifier() == B->getIdentifier();
  return !A->getName().empty() && A->getName() == B->getName();
}

bool sameType(const DIType *A, const DIType *B) {
  for (unsigned I = 0; I != 8; ++I) {
    A = TypeNames::strip(A);
    B = TypeNames::strip(B);
    if (A == B)
      return true;
    if (!A || !B)
      return false;
    auto *X = dyn_cast<DICompositeType>(A), *Y = dyn_cast<DICompositeType>(B);
    if (X && Y)
      return sameRecord(X, Y);
    auto To = TypeNames::pointee(A), Too = TypeNames::pointee(B);
    if (!To || !Too)
      return A->getTag() == B->getTag() && !A->getName().empty() && A->getName() == B->getName();
    A = *To;
    B = *Too;
  }
  return false;
}

/// A class without data still has a byte, and shares its address with the member there.
bool isEmpty(const DIType *T, unsigned Depth = 0) {
  auto *R = asRecord(TypeNames::strip(T));
  if (!R || TypeNames::bytes(R) > 1 || Depth > MaxMemberDepth)
    return false;
  for (const DINode *N : R->getElements()) {
    auto *D = dyn_cast_or_null<DIDerivedType>(N);
    if (D && D->getTag() == dwarf::DW_TAG_member && !D->isStaticMember() &&
        !isEmpty(D->getBaseType(), Depth + 1))
      return false;
    if (D && D->getTag() == dwarf::DW_TAG_inheritance && !isEmpty(D->getBaseType(), Depth + 1))
      return false;
  }
  return true;
}

/// One data member or base class of a record.
struct Part {
  const DIType *Type;
  StringRef Name;
  int64_t FirstBit, EndBit; ///< EndBit is unbounded for a flexible array
  bool IsBase, IsBitField;
};

int64_t extentAsBase(const DIType *T, unsigned Depth);

void partsOf(const DICompositeType *R, SmallVectorImpl<Part> &Parts, unsigned Depth = 0) {
  for (const DINode *N : R->getElements()) {
    if (auto *Variants = dyn_cast_or_null<DICompositeType>(N)) {
      if (Variants->getTag() == dwarf::DW_TAG_variant_part)
        Parts.push_back({Variants, "", 0, static_cast<int64_t>(R->getSizeInBits()), false, false});
      continue;
    }
    auto *D = dyn_cast_or_null<DIDerivedType>(N);
    if (!D || D->isStaticMember())
      continue;
    bool IsBase = D->getTag() == dwarf::DW_TAG_inheritance;
    if (!IsBase && D->getTag() != dwarf::DW_TAG_member)
      continue;
    // A virtual base's offset is in the virtual table.
    if (IsBase && (D->getFlags() & DINode::FlagVirtual))
      continue;
    const DIType *T = D->getBaseType();
    if (isEmpty(T))
      continue;
    int64_t First = D->getOffsetInBits();
    auto *Array = asArray(TypeNames::strip(T));
    int64_t Bits = D->isBitField() || (Array && isDescriptor(Array)) ? D->getSizeInBits()
                   : IsBase                                          ? extentAsBase(T, Depth)
                                                                     : TypeNames::bytes(T) * 8;
    Parts.push_back({T, D->getName(), First, First + Bits, IsBase, D->isBitField()});
  }
  // `T tail[]`, `T tail[0]` and the older `T tail[1]` at the end of a structure go on for as long as the
  // object does.
  if (!isUnion(R) && !Parts.empty()) {
    Part &Last = Parts.back();
    auto *A = asArray(TypeNames::strip(Last.Type));
    if (A && !isDescriptor(A) && TypeNames::bytes(A) <= TypeNames::bytes(A->getBaseType()))
      Last.EndBit = INT64_MAX / 2;
  }
}

/// Bits that a base class takes up in a class derived from it. Its virtual bases, which its own size
/// includes, and its tail padding are the derived class's to place.
int64_t extentAsBase(const DIType *T, unsigned Depth) {
  int64_t Bytes = TypeNames::bytes(T);
  auto *R = asRecord(TypeNames::strip(T));
  auto isVirtual = [](const DINode *N) {
    auto *D = dyn_cast_or_null<DIDerivedType>(N);
    return D && D->getTag() == dwarf::DW_TAG_inheritance && (D->getFlags() & DINode::FlagVirtual);
  };
  if (!R || Depth > MaxMemberDepth || none_of(R->getElements(), isVirtual))
    return Bytes * 8;
  SmallVector<Part, 16> Parts;
  partsOf(R, Parts, Depth + 1);
  int64_t End = 0;
  for (const Part &P : Parts)
    End = std::max(End, P.EndBit);
  return End;
}

/// Returns whether a variable index can walk something in \p T.
bool holdsArray(const DIType *T, unsigned Depth = 0) {
  T = TypeNames::strip(T);
  if (auto *A = asArray(T))
    return !isDescriptor(A);
  auto *R = asRecord(T);
  SmallVector<Part, 16> Parts;
  if (R && Depth < MaxMemberDepth)
    partsOf(R, Parts);
  return any_of(Parts, [&](const Part &P) { return holdsArray(P.Type, Depth + 1); });
}

/// Returns the type of the elements in \p R's buffer, if it is the typed part of Rust's vectors.
/// The part that it wraps allocates bytes.
const DIType *vectorElement(const DICompositeType *R) {
  if (!R->getName().starts_with("RawVec<") || R->getTemplateParams().empty())
    return nullptr;
  auto *T = dyn_cast<DITemplateTypeParameter>(R->getTemplateParams()[0]);
  return T ? T->getType() : nullptr;
}

struct Hit {
  const DIType *Owner = nullptr;
  const DIType *Element = nullptr; ///< of the vector that it is in
  std::string Path;
  const DIType *Leaf = nullptr;
  bool Indexed = false, Tagged = false, Doubtful = false, Fits = false;
  bool Plain = false, Ambiguous = false;
};

class Descent {
public:
  explicit Descent(const Probe &Q) : Q(Q) {}

  void visit(const DIType *T, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here, unsigned Depth = 0);
  void prefer(size_t From, const Hit &Whole);

  SmallVector<Hit, 4> Hits;

private:
  void array(const DICompositeType *A, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here, unsigned Depth);
  void descriptor(const DICompositeType *A, int64_t Offset, Hit Here);
  void record(const DICompositeType *R, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here, unsigned Depth);
  bool byStride(const DICompositeType *R, int64_t Base, int64_t Offset, ArrayRef<uint64_t> Strides,
                const Hit &Here, unsigned Depth);
  bool discriminant(const DICompositeType *R, int64_t Offset, int64_t FirstBit, size_t From, const Hit &Here);
  void finish(const DIType *Leaf, bool Doubtful, Hit Here);
  bool fits(const DIType *Leaf) const;

  bool isBlock() const { return Q.ElementBytes == 0; }
  int64_t width() const { return std::max<int64_t>(1, static_cast<int64_t>(Q.Bytes)); }

  static Hit into(const Part &P, const Hit &Here) {
    Hit Inner = Here;
    Inner.Plain = !P.IsBitField;
    if (P.IsBase) {
      if (Inner.Path.empty())
        Inner.Owner = TypeNames::strip(P.Type);
    } else if (!P.Name.empty()) {
      Inner.Path += (Inner.Path.empty() ? "" : ".") + P.Name.str();
    }
    return Inner;
  }

  const Probe &Q;
  unsigned Visits = 0;
};

bool Descent::fits(const DIType *Leaf) const {
  if (!Leaf || isBlock() || TypeNames::bytes(Leaf) != Q.ElementBytes)
    return false;
  ValueKind Kind = ValueKind::Integer;
  if (TypeNames::pointee(Leaf))
    Kind = ValueKind::Pointer;
  else if (auto *B = dyn_cast<DIBasicType>(Leaf))
    Kind = B->getEncoding() == dwarf::DW_ATE_float ? ValueKind::Float : ValueKind::Integer;
  return Q.Kind == ValueKind::Unknown || Kind == Q.Kind;
}

void Descent::finish(const DIType *Leaf, bool Doubtful, Hit Here) {
  Here.Leaf = Leaf;
  Here.Doubtful |= Doubtful;
  Here.Fits = fits(Leaf);
  Hits.push_back(std::move(Here));
}

void Descent::visit(const DIType *T, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here, unsigned Depth) {
  T = TypeNames::strip(T);
  if (++Visits > MaxVisits || Depth > MaxMemberDepth)
    return finish(nullptr, true, std::move(Here));
  if (auto *A = asArray(T))
    return array(A, Offset, Strides, std::move(Here), Depth + 1);
  if (auto *R = asRecord(T))
    return record(R, Offset, Strides, std::move(Here), Depth + 1);
  // A scalar explains any stride that is a multiple of it only as an array, which it is not.
  finish(T, !Strides.empty(), std::move(Here));
}

void Descent::array(const DICompositeType *A, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here,
                    unsigned Depth) {
  if (isDescriptor(A))
    return descriptor(A, Offset, std::move(Here));
  const DIType *Element = A->getBaseType();
  int64_t Bytes = TypeNames::bytes(Element);
  if (Here.Path.empty())
    Here.Owner = TypeNames::strip(Element);
  else if (!A->isVector())
    for (unsigned I = 0, E = std::max(1u, A->getElements().size()); I != E; ++I)
      Here.Path += "[]";
  Here.Indexed = true;
  Here.Plain = false;
  if (Bytes == 0 || (isBlock() && (Q.Bytes == 0 || static_cast<int64_t>(Q.Bytes) > Bytes)))
    return finish(TypeNames::strip(Element), false, std::move(Here));
  SmallVector<uint64_t, 2> Rest;
  for (uint64_t S : Strides)
    if (S % Bytes)
      Rest.push_back(S);
  visit(Element, floorMod(Offset, Bytes), Rest, std::move(Here), Depth);
}

/// Finds the part of the descriptor of a Fortran array; the elements are behind its first word.
void Descent::descriptor(const DICompositeType *A, int64_t Offset, Hit Here) {
  if (isBlock() || width() > 8 || Offset < 0)
    return finish(A, Offset < 0, std::move(Here));
  Here.Path += (Here.Path.empty() ? "" : ".") + descriptorPart(Offset).str();
  Here.Plain = false;
  finish(Offset == 0 ? descriptorPointer(A) : nullptr, false, std::move(Here));
}

/// A folded index (`a[i - 1]`) moves the constant offset out of the array that the stride belongs
/// to. Looks for the arrays in \p R that the strides could walk; true if it finds one.
bool Descent::byStride(const DICompositeType *R, int64_t Base, int64_t Offset, ArrayRef<uint64_t> Strides,
                       const Hit &Here, unsigned Depth) {
  if (Depth > MaxMemberDepth || ++Visits > MaxVisits)
    return false;
  SmallVector<Part, 16> Parts;
  partsOf(R, Parts);
  bool Found = false;
  for (const Part &P : Parts) {
    int64_t Start = Base + P.FirstBit / 8;
    const DIType *T = TypeNames::strip(P.Type);
    if (auto *A = asArray(T)) {
      int64_t Bytes = TypeNames::bytes(A->getBaseType());
      if (Bytes && all_of(Strides, [&](uint64_t S) { return S % Bytes == 0; })) {
        array(A, Offset - Start, Strides, into(P, Here), Depth + 1);
        Found = true;
      }
    } else if (auto *Inner = asRecord(T)) {
      Found |= byStride(Inner, Start, Offset, Strides, into(P, Here), Depth + 1);
    }
  }
  return Found;
}

void Descent::record(const DICompositeType *R, int64_t Offset, ArrayRef<uint64_t> Strides, Hit Here,
                     unsigned Depth) {
  if (Q.TagRecord && static_cast<int64_t>(Q.TagOffset) == Offset && sameRecord(R, Q.TagRecord))
    Here.Tagged = true;
  if (const DIType *Element = vectorElement(R))
    Here.Element = Element;
  int64_t Size = TypeNames::bytes(R);
  if (Q.Part && Offset == 0 && sameRecord(R, Q.Part))
    return finish(R, false, std::move(Here));
  if (!Q.Part && isBlock() && Offset == 0 && (Q.Bytes == 0 || static_cast<int64_t>(Q.Bytes) >= Size))
    return finish(R, false, std::move(Here));

  SmallVector<Part, 16> Parts, Touched;
  partsOf(R, Parts);
  int64_t First = Offset * 8, End = First + (isBlock() && Q.Bytes == 0 ? 1 : width()) * 8;
  if (Q.Bits) {
    First += Q.FirstBit;
    End = First + Q.Bits;
  }
  for (const Part &P : Parts)
    if (P.FirstBit < End && First < P.EndBit)
      Touched.push_back(P);

  size_t Before = Hits.size();
  bool Walkable = any_of(Touched, [](const Part &P) { return holdsArray(P.Type); });
  if (!Strides.empty() && !Walkable) {
    if (byStride(R, 0, Offset, Strides, Here, Depth + 1)) {
      prefer(Before, Here);
      return;
    }
    return finish(R, true, std::move(Here));
  }
  if (Touched.empty())
    return finish(R, true, std::move(Here));
  if (isUnion(R)) {
    for (const Part &P : Touched)
      visit(P.Type, Offset - P.FirstBit / 8, Strides, into(P, Here), Depth + 1);
    if (discriminant(R, Offset, First, Before, Here))
      return;
    prefer(Before, Here);
    for (size_t I = Before; I != Hits.size(); ++I) {
      Hits[I].Plain = false;
      Hits[I].Ambiguous |= Hits.size() - Before > 1 || Hits[I].Path == Here.Path;
    }
    return;
  }
  if (Touched.size() == 1 && !Touched.front().IsBitField) {
    const Part &P = Touched.front();
    visit(P.Type, Offset - P.FirstBit / 8, Strides, into(P, Here), Depth + 1);
    auto tagged = [](const Hit &H) { return H.Tagged; };
    if (Strides.empty() || !Q.TagRecord || std::any_of(Hits.begin() + Before, Hits.end(), tagged))
      return;
    size_t Guessed = Hits.size();
    byStride(R, 0, Offset, Strides, Here, Depth + 1);
    if (std::any_of(Hits.begin() + Guessed, Hits.end(), tagged)) {
      Hits.erase(Hits.begin() + Before, Hits.begin() + Guessed);
      return prefer(Before, Here);
    }
    Hits.truncate(Guessed);
    return;
  }
  // Several members at once: a bit-field's storage unit, a merged or vector access, part of a copy.
  if (Touched.size() > MaxNames || (isBlock() && Touched.size() == Parts.size()))
    return finish(R, false, std::move(Here));
  for (const Part &P : Touched)
    if (P.IsBase)
      visit(P.Type, Offset - P.FirstBit / 8, Strides, into(P, Here), Depth + 1);
    else
      finish(TypeNames::strip(P.Type), false, into(P, Here));
}

/// The discriminant of \p R's variants stands where none has a member, or in the impossible values
/// of a member (a niche). Code that knows the variant reaches the member by the member's own type.
/// So a whole integer here is read, or set to a constant, to distinguish variants.
bool Descent::discriminant(const DICompositeType *R, int64_t Offset, int64_t FirstBit, size_t From,
                           const Hit &Here) {
  const DIDerivedType *D = R->getTag() == dwarf::DW_TAG_variant_part ? R->getDiscriminator() : nullptr;
  if (!D || FirstBit != static_cast<int64_t>(D->getOffsetInBits()))
    return false;
  bool Alone = std::all_of(Hits.begin() + From, Hits.end(), [](const Hit &H) { return H.Doubtful; });
  bool Niche = Q.MayTellVariants && Q.Kind == ValueKind::Integer && !Q.Bits && !isBlock() &&
               Offset * 8 == FirstBit && TypeNames::bytes(D->getBaseType()) == Q.ElementBytes;
  if (!Alone && !Niche)
    return false;
  Hits.truncate(From);
  finish(D->getBaseType(), false, into({D, "{discriminant}", 0, 0, false, false}, Here));
  return true;
}

/// Among alternatives that share a place, keeps those that the alias tag names, then those with the
/// access's shape.
void Descent::prefer(size_t From, const Hit &Whole) {
  auto keep = [&](auto Good) {
    if (std::any_of(Hits.begin() + From, Hits.end(), Good))
      Hits.erase(std::remove_if(Hits.begin() + From, Hits.end(), [&](const Hit &H) { return !Good(H); }),
                 Hits.end());
  };
  if (!Whole.Tagged)
    keep([](const Hit &H) { return H.Tagged; });
  keep([](const Hit &H) { return !H.Doubtful; });
  keep([](const Hit &H) { return H.Fits; });
  if (Q.Value.Pointee)
    keep([&](const Hit &H) {
      auto To = TypeNames::pointee(H.Leaf);
      return To && sameType(*To, Q.Value.Pointee);
    });
  if (Q.Value.Called || Q.Value.Dereferenced)
    keep([&](const Hit &H) {
      auto To = TypeNames::pointee(H.Leaf);
      const DIType *T = To ? TypeNames::strip(*To) : nullptr;
      return T && isa<DISubroutineType>(T) == Q.Value.Called;
    });
  if (Hits.size() - From <= MaxNames)
    return;
  bool Fits = Hits[From].Fits;
  const DIType *Leaf = Hits[From].Leaf;
  Hits.truncate(From);
  Hits.push_back(Whole);
  Hits.back().Leaf = Leaf;
  Hits.back().Fits = Fits;
}

} // namespace

static Landing landAt(const DIType *Object, const Probe &Q, int64_t Offset) {
  Landing L;
  const DIType *T = TypeNames::strip(Object);
  L.Owner = L.Leaf = T;
  constexpr int64_t TooFar = int64_t(1) << 48; // no object is that large, and bits are counted in 64 bits
  int64_t Bytes = TypeNames::bytes(T);
  if (!T || Bytes >= TooFar || Offset >= TooFar || Offset <= -TooFar) {
    L.Doubtful = true;
    return L;
  }
  SmallVector<uint64_t, 2> Strides;
  Hit Root;
  Root.Owner = T;
  if (Q.Repeats && Bytes > 0) {
    for (uint64_t S : Q.Strides)
      if (S % Bytes)
        Strides.push_back(S);
    Root.Indexed = Strides.size() != Q.Strides.size();
    bool Outside = Offset < 0 || Offset >= Bytes;
    bool InTail = false;
    if (auto *R = asRecord(T); R && Offset >= 0 && Outside) {
      SmallVector<Part, 16> Parts;
      partsOf(R, Parts);
      InTail = !Parts.empty() && Parts.back().EndBit > Bytes * 8 && !isUnion(R);
    }
    if (InTail) { // what it is an index of is the array at the end, not an array of such objects
      Strides.assign(Q.Strides.begin(), Q.Strides.end());
      Root.Indexed = false;
    }
    if (Outside && !InTail && Strides.empty()) {
      // Without a variable index this is `p[1].x`, or a header whose payload follows it.
      Root.Doubtful = !Root.Indexed && asRecord(T);
      Root.Indexed = true;
      Offset = floorMod(Offset, Bytes);
    }
  } else {
    Strides.assign(Q.Strides.begin(), Q.Strides.end());
    Root.Doubtful = !asArray(T) && (Offset < 0 || Offset >= Bytes) && Strides.empty();
  }
  L.Repeated = Root.Indexed;

  Descent D(Q);
  D.visit(T, Offset, Strides, Root);
  if (D.Hits.empty())
    return L;
  const Hit &First = D.Hits.front();
  L.Owner = First.Owner;
  L.Leaf = First.Leaf;
  L.Doubtful = First.Doubtful;
  L.Plain = First.Plain;
  SmallVector<StringRef, 8> Paths;
  for (const Hit &H : D.Hits) {
    L.Tagged |= H.Tagged;
    L.Fits |= H.Fits;
    L.Ambiguous |= H.Ambiguous;
    if (!H.Path.empty() && !is_contained(Paths, H.Path))
      Paths.push_back(H.Path);
    if (TypeNames::pointee(H.Leaf) && !is_contained(L.Pointers, H.Leaf))
      L.Pointers.push_back(H.Leaf);
  }
  L.Member = join(Paths, "|");
  if (!L.Pointers.empty())
    L.Leaf = L.Pointers.front();
  auto To = TypeNames::pointee(First.Leaf);
  if (const DIType *Byte = To ? TypeNames::strip(*To) : nullptr; Byte && Byte->getName() == "u8")
    L.Element = First.Element;
  return L;
}

Landing land(const DIType *Object, const Probe &Q) {
  Landing L = landAt(Object, Q, Q.Offset);
  for (int64_t Choice : Q.Choices) {
    Landing Other = landAt(Object, Q, Q.Offset + Choice);
    if (Other.Owner != L.Owner || Other.Doubtful || Other.Member.empty() || L.Member.empty())
      continue;
    L.Tagged |= Other.Tagged;
    if (!is_contained(split(L.Member, '|'), StringRef(Other.Member)))
      L.Member += "|" + Other.Member;
    for (const DIType *P : Other.Pointers)
      if (!is_contained(L.Pointers, P))
        L.Pointers.push_back(P);
  }
  return L;
}

bool holdsAt(const DIType *Object, const Probe &Q, const DICompositeType *Inner) {
  Probe P = Q;
  P.Bytes = P.ElementBytes = 1;
  P.Bits = 0;
  P.Kind = ValueKind::Unknown;
  P.TagRecord = Inner;
  P.TagOffset = 0;
  return land(Object, P).Tagged;
}

std::optional<PointerPart> pointerIn(const DIType *Object, uint64_t Offset) {
  const DIType *T = TypeNames::strip(Object);
  if (auto To = TypeNames::pointee(T))
    return Offset == 0 ? std::optional(PointerPart{T, *To, ""}) : std::nullopt;
  if (!asRecord(T) && !asArray(T))
    return std::nullopt;
  Probe Q;
  Q.Offset = static_cast<int64_t>(Offset);
  Q.Kind = ValueKind::Pointer;
  Q.Bytes = Q.ElementBytes = 8;
  Landing L = land(T, Q);
  auto To = TypeNames::pointee(L.Leaf);
  if (L.Doubtful || !To)
    return std::nullopt;
  PointerPart Found{TypeNames::strip(L.Leaf), L.Element ? L.Element : *To, ""};
  if (TypeNames::bytes(T) != Q.Bytes)
    Found.Member = L.Member;
  StringRef Path = Found.Member;
  if (L.Element && Path.consume_back(RustBuffer))
    Found.Member = Path.rtrim('.').str();
  return Found;
}

} // namespace memlode
