//===- PointerChoice.cpp - the most credible of several beliefs -----------===//
#include "names/Fortran.h"
#include "names/PointerWalk.h"
#include "names/ValueUse.h"

#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr size_t MaxText = 72; ///< bytes of a source expression before its middle is left out

/// The function a variable is declared in.
const DISubprogram *functionOf(const DILocalVariable *V) {
  return V && V->getScope() ? V->getScope()->getSubprogram() : nullptr;
}

} // namespace

Probe probe(const Place &P) {
  Probe Q;
  Q.Offset = P.Offset;
  Q.Strides = P.Strides;
  Q.Choices = P.Choices;
  Q.Repeats = P.Repeats;
  return Q;
}

/// Grades how near the place's variable is to the access: first the frame it stands in, after inlining, then
/// whether the access is in the variable's own block. A macro that is used twice makes two blocks with
/// variables of one name.
int PointerWalk::closeness(const Place &P, const Instruction *I) const {
  const DebugLoc &Loc = I->getDebugLoc();
  if (!P.Variable || !Loc)
    return 0;
  const DISubprogram *SP = functionOf(P.Variable);
  int Steps = 0;
  for (const DILocation *L = Loc.get(); L; L = L->getInlinedAt(), ++Steps)
    if (L->getInlinedAt() == P.Frame && L->getScope()->getSubprogram() == SP) {
      const DILocalScope *Block = P.Variable->getScope()->getNonLexicalBlockFileScope();
      const DIScope *S = L->getScope();
      while (S && S != Block && !isa<DISubprogram>(S))
        S = S->getScope();
      return std::max(1, 20 - 2 * Steps) - (S == Block ? 0 : 10);
    }
  return 0;
}

/// False if the tag's scalar differs from the type found. Aliasing tags of one size may differ in
/// sign only.
bool PointerWalk::sameScalar(const AliasTag &Tag, const DIType *Leaf) const {
  std::string Scalar = Tag.scalarType();
  if (Scalar.empty() || !Leaf)
    return true;
  // Older front ends call every pointer alike, and demangled templates differ in spaces.
  if (TypeNames::pointee(Leaf))
    return Scalar == "void *" || Scalar == Types.name(Leaf) || StringRef(Scalar).contains('<');
  StringRef Name = Types.name(Leaf);
  if (!isa<DIBasicType>(Leaf))
    return true; // enumerations go by their underlying type in C
  StringRef Plain = Scalar;
  Name.consume_front("unsigned ");
  Plain.consume_front("unsigned ");
  return Plain == Name || Plain == "bool" || Plain == "_Bool";
}

Reading PointerWalk::weigh(const Place &P, const AccessShape &A) const {
  Reading R;
  R.At = P;
  R.Score = -3 * static_cast<int>(std::min(P.Distance, 5u)) + closeness(P, A.I);
  if (P.Text.empty())
    R.Score -= 8; // a temporary; a variable that is copied into it or from it says more
  if (P.Indirect)
    return R;
  Probe Q = probe(P);
  Q.Bytes = A.Bytes;
  Q.ElementBytes = A.ElementBytes;
  Q.Kind = A.Kind;
  Q.FirstBit = A.FirstBit;
  Q.Bits = A.Bits;
  auto *Store = dyn_cast<StoreInst>(A.I);
  Q.MayTellVariants = isa<LoadInst>(A.I) || (Store && isa<ConstantInt>(Store->getValueOperand()));
  Q.TagRecord = A.TagRecord ? A.TagRecord : P.Via;
  Q.TagOffset = A.TagRecord ? A.Tag.Offset : static_cast<uint64_t>(P.ViaOffset);
  R.Found = land(P.Type, Q);
  if (R.Found.Ambiguous && A.Kind == ValueKind::Pointer) {
    Q.Value = useOfValue(A, Records);
    R.Found = land(P.Type, Q);
  }
  bool Typed = TypeNames::strip(P.Type) != nullptr;
  if (A.TagRecord)
    R.Score += R.Found.Tagged ? 60 : Typed ? -30 : -10;
  if (Typed && A.ElementBytes)
    R.Score += R.Found.Fits ? 8 : -8;
  // Front ends tag every access that names a member, save those of unions; without such a tag it can still be
  // one that a helper was passed a pointer to, if the scalar is the same.
  if (R.Found.Plain && !A.Tag.isMember() && !sameScalar(A.Tag, R.Found.Leaf))
    R.Score -= 20;
  // The member is more than the reference it was passed by.
  if (R.Found.isFirm() && !R.Found.Member.empty())
    R.Score += 6;
  if (R.Found.Doubtful)
    R.Score -= 6;
  if (P.Merged)
    R.Score -= 12;
  return R;
}

std::optional<Reading> PointerWalk::read(const Value *Pointer, const AccessShape &A) {
  std::optional<Reading> Best;
  for (const Place &P : places(Pointer)) {
    Reading R = weigh(P, A);
    if (!Best || R.Score > Best->Score)
      Best = std::move(R);
  }
  if (!A.TagRecord || (Best && Best->Found.Tagged))
    return Best;
  // Nothing believed about the pointer has the member that the source named, so the source cast the pointer.
  // The variable stays, the type is the tag's.
  Place P;
  if (Best) {
    P = Best->At;
    P.Strides.clear();
    P.Arrow = true;
    P.Indirect = false;
  }
  P.Type = A.TagRecord;
  P.Offset = static_cast<int64_t>(A.Tag.Offset);
  P.Repeats = true;
  P.FromTag = true;
  return weigh(P, A);
}

std::optional<Reading> PointerWalk::holder(const Value *Pointer, const AccessShape &A, StringRef Part) {
  std::optional<Reading> Best;
  for (const Place &P : places(Pointer)) {
    if (P.Indirect || P.Merged || !P.Type)
      continue;
    Reading R = weigh(P, A);
    StringRef Path = R.Found.Member;
    if (R.Found.Doubtful || R.Found.Ambiguous || !Path.consume_back(Part) || !Path.ends_with("."))
      continue;
    // Of wrappers in wrappers, the outermost.
    if (!Best || R.Found.Member.size() > Best->Found.Member.size())
      Best = std::move(R);
  }
  return Best;
}

const DIType *PointerWalk::typeOfValue(const AccessShape &A) const {
  return memlode::typeOfValue(A, Records);
}

std::string PointerWalk::text(const Reading &R) {
  const Place &P = R.At;
  if (P.Text.empty())
    return "";
  StringRef Member = StringRef(R.Found.Member).split('|').first;
  if (size_t Table = Member.find("_vptr"); Table != StringRef::npos)
    Member = Member.take_front(Table + strlen("_vptr"));
  auto *Array = dyn_cast_or_null<DICompositeType>(TypeNames::strip(P.Type));
  // In Fortran an array goes by its own name, not by that of the pointer in its descriptor.
  if (Member == DescriptorData)
    return P.Text;
  if (Member.consume_back(DescriptorData))
    Member = Member.rtrim('.');
  bool Indexed = R.Found.Repeated || (Array && Array->getTag() == dwarf::DW_TAG_array_type);
  // What is reached through a pointer to the pointer: `(*p)->next`.
  std::string Text = P.Text[0] == '*' && !Member.empty() ? "(" + P.Text + ")" : P.Text;
  auto *Class = dyn_cast_or_null<DICompositeType>(R.Found.Owner);
  if (Text == "this" && Class && Class->getName().empty())
    return Member.str(); // what a lambda captured goes by its own name
  if (Member.empty()) {
    if (Indexed)
      Text += "[]";
    else if (P.Arrow)
      Text = "*" + Text;
  } else {
    Text += (Indexed ? "[]." : P.Arrow ? "->" : ".") + Member.str();
  }
  if (Text.size() > MaxText)
    Text = (Member.empty() ? StringRef() : "…->" + Member).str();
  return Text;
}

} // namespace memlode
