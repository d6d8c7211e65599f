//===- TypeNames.cpp ------------------------------------------------------===//
#include "names/TypeNames.h"
#include "names/Fortran.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace memlode {

namespace {

/// Hostile or recursive debug info must not overflow the stack.
constexpr unsigned MaxTypeDepth = 24;

bool isQualifier(unsigned Tag) {
  return Tag == dwarf::DW_TAG_typedef || Tag == dwarf::DW_TAG_const_type ||
         Tag == dwarf::DW_TAG_volatile_type || Tag == dwarf::DW_TAG_restrict_type ||
         Tag == dwarf::DW_TAG_atomic_type || Tag == dwarf::DW_TAG_immutable_type ||
         Tag == dwarf::DW_TAG_LLVM_ptrauth_type || Tag == dwarf::DW_TAG_template_alias;
}

bool isRecord(const DICompositeType *T) {
  unsigned Tag = T->getTag();
  return Tag == dwarf::DW_TAG_structure_type || Tag == dwarf::DW_TAG_class_type ||
         Tag == dwarf::DW_TAG_union_type;
}

/// The demangler and clang's debug info differ in the space between closing angle brackets.
std::string closeBrackets(StringRef S) {
  std::string R;
  for (size_t I = 0; I != S.size(); ++I)
    if (S[I] != ' ' || I + 1 == S.size() || S[I + 1] != '>')
      R += S[I];
  return R;
}

/// `a::b<c<d>>` → `a::b`; names like `operator<` never reach here.
StringRef withoutArguments(StringRef S) {
  if (!S.ends_with(">"))
    return S;
  unsigned Depth = 0;
  for (size_t I = S.size(); I--;) {
    if (S[I] == '>')
      ++Depth;
    else if (S[I] == '<' && --Depth == 0)
      return S.take_front(I);
  }
  return S;
}

/// All debug-info nodes that the module's units, functions, variables and globals lead to.
template <typename Visit> void forEachNode(Module &M, Visit V) {
  DenseSet<const MDNode *> Seen;
  SmallVector<const MDNode *, 64> Work;
  auto push = [&](const Metadata *MD) {
    auto *N = dyn_cast_or_null<DINode>(MD);
    auto *Expr = dyn_cast_or_null<DIGlobalVariableExpression>(MD);
    auto *Tuple = dyn_cast_or_null<MDTuple>(MD);
    const MDNode *Node = N      ? static_cast<const MDNode *>(N)
                         : Expr ? static_cast<const MDNode *>(Expr)
                                : Tuple;
    if (Node && Seen.insert(Node).second)
      Work.push_back(Node);
  };
  auto drain = [&] {
    while (!Work.empty()) {
      const MDNode *N = Work.pop_back_val();
      V(N);
      for (const MDOperand &Op : N->operands())
        push(Op.get());
    }
  };
  for (DICompileUnit *CU : M.debug_compile_units())
    push(CU);
  drain();
  SmallVector<DIGlobalVariableExpression *, 1> Globals;
  for (GlobalVariable &G : M.globals()) {
    Globals.clear();
    G.getDebugInfo(Globals);
    for (auto *E : Globals)
      push(E);
  }
  for (Function &F : M) {
    push(F.getSubprogram());
    // At -O0 a function's own list of variables is empty: its records are the only way to their types.
    for (Instruction &I : instructions(F)) {
      for (DbgVariableRecord &R : filterDbgVars(I.getDbgRecordRange()))
        push(R.getVariable());
      if (MDNode *Site = I.getMetadata("heapallocsite"))
        push(Site);
    }
    drain();
  }
  drain();
}

} // namespace

TypeNames::TypeNames(Module &M) : Layout(M.getDataLayout()) {
  forEachNode(M, [&](const MDNode *N) {
    if (auto *T = dyn_cast<DICompositeType>(N)) {
      if (!isRecord(T) || T->isForwardDecl())
        return;
      Composites.push_back(T);
      if (!T->getName().empty())
        ByName[T->getName()].push_back(T);
      if (!T->getIdentifier().empty())
        ByIdentifier.try_emplace(T->getIdentifier(), T);
    } else if (auto *D = dyn_cast<DIDerivedType>(N)) {
      if (D->getTag() != dwarf::DW_TAG_typedef)
        return;
      auto *Base = dyn_cast_or_null<DICompositeType>(D->getBaseType());
      if (!Base || !Base->getName().empty())
        return;
      TypedefOf.try_emplace(Base, D);
      if (isRecord(Base))
        ByName[D->getName()].push_back(Base);
    }
  });
}

const DIType *TypeNames::strip(const DIType *T) {
  for (unsigned I = 0; I != 64; ++I) {
    auto *D = dyn_cast_or_null<DIDerivedType>(T);
    if (!D || !isQualifier(D->getTag()))
      return T;
    T = D->getBaseType();
  }
  return nullptr; // a cycle; no front end makes one
}

/// The largest alignment that a member of \p T has by itself, in bytes. flang leaves the padding at the end
/// of a derived type out of its size.
static uint64_t alignment(const DICompositeType *T) {
  uint64_t Largest = 1;
  if (T->getTag() == dwarf::DW_TAG_structure_type)
    for (const DINode *N : T->getElements())
      if (auto *Member = dyn_cast_or_null<DIDerivedType>(N); Member && !Member->isStaticMember())
        Largest = std::max<uint64_t>(Largest, Member->getAlignInBits() / 8);
  return Largest;
}

static const DICompositeType *unsizedArray(const DIType *T) {
  auto *A = dyn_cast_or_null<DICompositeType>(T);
  return A && A->getTag() == dwarf::DW_TAG_array_type && !A->getSizeInBits() ? A : nullptr;
}

/// The size of an array type without a size, as flang's are: 0 when its extents are not constant.
static uint64_t arrayBytes(const DICompositeType *A) {
  uint64_t Number = 1;
  bool Overflows = false;
  for (unsigned Depth = 0; Depth != MaxTypeDepth && !A->getRawDataLocation(); ++Depth) {
    for (const DINode *N : A->getElements()) {
      auto *Range = dyn_cast_or_null<DISubrange>(N);
      auto *Count = Range ? dyn_cast_if_present<ConstantInt *>(Range->getCount()) : nullptr;
      if (!Count || Count->isNegative())
        return 0;
      Number = SaturatingMultiply(Number, Count->getZExtValue(), &Overflows);
      if (Overflows)
        return 0;
    }
    const DIType *Element = TypeNames::strip(A->getBaseType());
    A = unsizedArray(Element);
    if (!A) {
      uint64_t Bytes = SaturatingMultiply(Number, TypeNames::bytes(Element), &Overflows);
      return Overflows ? 0 : Bytes;
    }
  }
  return 0;
}

uint64_t TypeNames::bytes(const DIType *T) {
  T = strip(T);
  if (!T)
    return 0;
  auto *Composite = dyn_cast<DICompositeType>(T);
  if (uint64_t Bits = T->getSizeInBits())
    return alignTo((Bits + 7) / 8, Composite && Bits % 64 ? alignment(Composite) : 1);
  if (const DICompositeType *A = unsizedArray(T))
    return arrayBytes(A);
  // Pointers and references carry their size; enumerations may leave it to their base.
  if (auto *C = dyn_cast<DICompositeType>(T))
    if (C->getTag() == dwarf::DW_TAG_enumeration_type && C->getBaseType() != T)
      return C->getBaseType() ? (C->getBaseType()->getSizeInBits() + 7) / 8 : 0;
  return 0;
}

std::optional<const DIType *> TypeNames::pointee(const DIType *T) {
  auto *D = dyn_cast_or_null<DIDerivedType>(strip(T));
  if (!D)
    return std::nullopt;
  switch (D->getTag()) {
  case dwarf::DW_TAG_pointer_type:
  case dwarf::DW_TAG_reference_type:
  case dwarf::DW_TAG_rvalue_reference_type:
    return D->getBaseType();
  default:
    return std::nullopt;
  }
}

bool TypeNames::isReference(const DIType *T) {
  auto *D = dyn_cast_or_null<DIDerivedType>(strip(T));
  return D &&
         (D->getTag() == dwarf::DW_TAG_reference_type || D->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

StringRef TypeNames::name(const DIType *T) {
  T = strip(T);
  if (!T)
    return "void";
  StringRef &Known = Names[T];
  if (Known.empty()) {
    Known = Saver.save(spell(T, 0));
    if (const auto *C = dyn_cast<DICompositeType>(T))
      Named[Known].push_back(C);
  }
  return Known;
}

const DICompositeType *TypeNames::byName(StringRef Name, uint64_t Bytes) const {
  const auto Found = Named.find(Name);
  if (Found == Named.end())
    return nullptr;
  const auto It = find_if(Found->second, [&](const DICompositeType *T) { return bytes(T) == Bytes; });
  return It == Found->second.end() ? nullptr : *It;
}

std::string TypeNames::spell(const DIType *T, unsigned Depth) {
  T = strip(T);
  if (!T)
    return "void";
  if (Depth > MaxTypeDepth)
    return "…";
  if (auto *C = dyn_cast<DICompositeType>(T))
    return spellComposite(C, Depth + 1);
  if (auto *F = dyn_cast<DISubroutineType>(T))
    return spellFunction(F, Depth + 1);
  auto *D = dyn_cast<DIDerivedType>(T);
  if (!D)
    return T->getName().str();
  StringRef Sigil;
  switch (D->getTag()) {
  case dwarf::DW_TAG_pointer_type:
    Sigil = "*";
    break;
  case dwarf::DW_TAG_reference_type:
    Sigil = "&";
    break;
  case dwarf::DW_TAG_rvalue_reference_type:
    Sigil = "&&";
    break;
  case dwarf::DW_TAG_ptr_to_member_type:
    return spell(D->getBaseType(), Depth + 1) + " " +
           spell(dyn_cast_or_null<DIType>(D->getExtraData()), Depth + 1) + "::*";
  default:
    return spell(D->getBaseType(), Depth + 1);
  }
  if (auto *F = dyn_cast_or_null<DISubroutineType>(strip(D->getBaseType()))) {
    std::string Text = spellFunction(F, Depth + 1);
    size_t Open = Text.find('(');
    return Text.substr(0, Open) + "(" + Sigil.str() + ")" + Text.substr(Open);
  }
  std::string Base = spell(D->getBaseType(), Depth + 1);
  bool Joined = !Base.empty() && (Base.back() == '*' || Base.back() == '&');
  return Base + (Joined ? "" : " ") + Sigil.str();
}

std::string TypeNames::spellFunction(const DISubroutineType *T, unsigned Depth) {
  DITypeRefArray Types = T->getTypeArray();
  if (!Types || Types.size() == 0)
    return "void (void)";
  std::string Text = spell(Types[0], Depth) + " (";
  for (unsigned I = 1; I != Types.size(); ++I)
    Text += (I == 1 ? "" : ", ") + (Types[I]                ? spell(Types[I], Depth)
                                    : I + 1 == Types.size() ? "..."
                                                            : "void");
  return Text + (Types.size() == 1 ? "void)" : ")");
}

std::string TypeNames::scopePrefix(const DIScope *S, unsigned Depth) {
  if (!S || Depth > MaxTypeDepth)
    return "";
  if (auto *N = dyn_cast<DINamespace>(S)) {
    StringRef Own = N->getName().empty() ? "(anonymous namespace)" : N->getName();
    return scopePrefix(N->getScope(), Depth + 1) + Own.str() + "::";
  }
  if (auto *C = dyn_cast<DICompositeType>(S))
    return spellComposite(C, Depth + 1) + "::";
  return ""; // files, units, and functions: a local type goes by its own name
}

std::string TypeNames::spellComposite(const DICompositeType *T, unsigned Depth) {
  if (Depth > MaxTypeDepth)
    return "…";
  if (T->getTag() == dwarf::DW_TAG_array_type) {
    std::string Text = spell(T->getBaseType(), Depth);
    if (T->isVector())
      Text += " vector";
    for (const DINode *N : T->getElements()) {
      auto *Range = dyn_cast<DISubrange>(N);
      auto *Count = Range ? dyn_cast_if_present<ConstantInt *>(Range->getCount()) : nullptr;
      Text +=
          "[" + (Count && !Count->isMinusOne() ? std::to_string(Count->getZExtValue()) : std::string()) + "]";
    }
    return Text;
  }
  if (!T->getName().empty())
    return scopePrefix(T->getScope(), Depth) + T->getName().str();
  if (const DIDerivedType *Alias = TypedefOf.lookup(T))
    return scopePrefix(Alias->getScope(), Depth) + Alias->getName().str();
  StringRef Word;
  switch (T->getTag()) {
  case dwarf::DW_TAG_union_type:
    Word = "union";
    break;
  case dwarf::DW_TAG_enumeration_type:
    Word = "enum";
    break;
  case dwarf::DW_TAG_class_type: // C++ has unnamed classes too, but closures are nearly all of them
    Word = "lambda";
    break;
  default:
    Word = "struct";
  }
  return (Word + " {" + sys::path::filename(T->getFilename()) + ":" + Twine(T->getLine()) + "}").str();
}

void TypeNames::indexQualifiedNames() {
  if (std::exchange(QualifiedIndexed, true))
    return;
  for (const DICompositeType *T : Composites) {
    std::string Full = closeBrackets(name(T));
    ByQualified[Full].push_back(T);
    ByTemplate[withoutArguments(Full)].push_back(T);
  }
}

const DICompositeType *TypeNames::byAliasName(StringRef Name) {
  if (Name.empty())
    return nullptr;
  auto [It, New] = AliasMemo.try_emplace(Name, nullptr);
  return New ? It->second = findAlias(Name) : It->second;
}

const DICompositeType *TypeNames::findAlias(StringRef Name) {
  auto only = [](const StringMap<Candidates> &Map, StringRef Key) -> const DICompositeType * {
    auto It = Map.find(Key);
    if (It == Map.end())
      return nullptr;
    // Two types of one name (static ones of two units, local ones of two functions) are told apart only if
    // alike.
    for (const DICompositeType *T : It->second)
      if (T->getSizeInBits() != It->second.front()->getSizeInBits())
        return nullptr;
    return It->second.front();
  };
  if (!Name.starts_with("_ZTS"))
    return only(ByName, Name);
  if (const DICompositeType *T = ByIdentifier.lookup(Name))
    return T;
  // Types without linkage have no identifier in debug info, only a qualified name.
  std::string Plain = demangle(Name);
  StringRef Text = Plain;
  if (!Text.consume_front("typeinfo name for "))
    return nullptr;
  indexQualifiedNames();
  return only(ByQualified, closeBrackets(Text));
}

const DICompositeType *TypeNames::byStruct(const StructType *T) {
  if (!T || T->isLiteral() || !T->hasName() || T->isOpaque())
    return nullptr;
  auto [It, New] = StructMemo.try_emplace(T, nullptr);
  if (!New)
    return It->second;
  StringRef Name = T->getName();
  if (StringRef Derived = derivedTypeName(Name); !Derived.empty())
    Name = Derived;
  else if (!Name.consume_front("struct.") && !Name.consume_front("class.") && !Name.consume_front("union."))
    return nullptr;
  // LLVM appends `.7` to tell apart equal names of linked modules, and `.base` for a class without its tail
  // padding.
  bool IsBase = false;
  auto [Head, Tail] = Name.rsplit('.');
  if (!Tail.empty() && all_of(Tail, [](char C) { return C >= '0' && C <= '9'; }))
    Name = Head;
  if (Name.consume_back(".base"))
    IsBase = true;
  if (Name.empty() || Name == "anon")
    return nullptr;
  indexQualifiedNames();
  std::string Key = closeBrackets(Name);
  const DICompositeType *Found = nullptr;
  bool Ambiguous = false;
  uint64_t Bits = Layout.getTypeAllocSizeInBits(const_cast<StructType *>(T)).getKnownMinValue();
  for (const StringMap<Candidates> *Map : {&ByQualified, &ByTemplate}) {
    auto Hit = Map->find(Key);
    if (Hit == Map->end())
      continue;
    for (const DICompositeType *C : Hit->second) {
      if (!IsBase && bytes(C) * 8 != Bits)
        continue;
      if (Found && name(Found) != name(C))
        Ambiguous = true;
      Found = Found ? Found : C;
    }
    if (Found)
      break;
  }
  return StructMemo[T] = Ambiguous ? nullptr : Found;
}

} // namespace memlode
