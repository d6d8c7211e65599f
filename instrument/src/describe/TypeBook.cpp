//===- TypeBook.cpp -------------------------------------------------------===//

#include "describe/TypeBook.h"

#include "memlode_format.h"
#include "names/Fortran.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"

using namespace llvm;

namespace memlode {

namespace {

/// Hostile debug info must not overflow the stack.
constexpr unsigned MaxDepth = 64;

/// One member as the table has it.
struct Part {
  uint8_t Kind = MEMLODE_MEMBER_KIND_FIELD;
  StringRef Name;
  uint64_t FirstBit = 0, Bits = 0;
  uint32_t Type = 0; ///< index + 1
  unsigned Flags = 0;
  /// The values of the discriminant that mean this variant; none: all that mean no other.
  const ConstantInt *Value = nullptr;
};

void put(TableList::Bytes &Out, const Part &P, Table &Into) {
  Out.push_back(static_cast<char>(P.Kind));
  putVarint(Out, P.Name.empty() ? 0 : Into.string(P.Name) + 1);
  putVarint(Out, P.FirstBit);
  putVarint(Out, P.Bits);
  putVarint(Out, P.Type);
  putVarint(Out, P.Flags);
  if (P.Kind == MEMLODE_MEMBER_KIND_VARIANT) {
    putVarint(Out, P.Value != nullptr);
    if (P.Value)
      putVarint(Out, P.Value->getValue().zextOrTrunc(64).getZExtValue());
  }
}

const DICompositeType *arrayOf(const DIType *T) {
  const auto *A = dyn_cast_or_null<DICompositeType>(TypeNames::strip(T));
  return A && A->getTag() == dwarf::DW_TAG_array_type ? A : nullptr;
}

/// Bits that a member takes up.
uint64_t bitsOf(const DIDerivedType &D) {
  const DICompositeType *A = arrayOf(D.getBaseType());
  if (D.isBitField() || (A && isDescriptor(A)))
    return D.getSizeInBits();
  return TypeNames::bytes(D.getBaseType()) * 8;
}

uint8_t formOf(const DIType *T) {
  switch (T->getTag()) {
  case dwarf::DW_TAG_structure_type:
    return MEMLODE_TYPE_FORM_STRUCTURE;
  case dwarf::DW_TAG_class_type:
    return MEMLODE_TYPE_FORM_CLASS;
  case dwarf::DW_TAG_union_type:
    return MEMLODE_TYPE_FORM_UNION;
  case dwarf::DW_TAG_variant_part:
    return MEMLODE_TYPE_FORM_VARIANTS;
  case dwarf::DW_TAG_array_type:
    return isDescriptor(cast<DICompositeType>(T)) ? MEMLODE_TYPE_FORM_DESCRIPTOR : MEMLODE_TYPE_FORM_ARRAY;
  case dwarf::DW_TAG_enumeration_type:
    return MEMLODE_TYPE_FORM_ENUMERATION;
  case dwarf::DW_TAG_pointer_type:
  case dwarf::DW_TAG_reference_type:
  case dwarf::DW_TAG_rvalue_reference_type:
    return MEMLODE_TYPE_FORM_POINTER;
  default:
    return MEMLODE_TYPE_FORM_SCALAR;
  }
}

/// Returns whether a type has more to describe than its name and size.
bool isWorthDescribing(const DIType *T) {
  const uint8_t Form = formOf(T);
  return Form != MEMLODE_TYPE_FORM_SCALAR && Form != MEMLODE_TYPE_FORM_POINTER &&
         Form != MEMLODE_TYPE_FORM_ENUMERATION;
}

} // namespace

uint32_t TypeBook::describe(const DIType *T, unsigned Depth) {
  T = TypeNames::strip(T);
  if (!T || Depth > MaxDepth)
    return 0;
  if (const auto Found = Known.find(T); Found != Known.end())
    return Found->second;
  Known[T] = 0; // a record that contains itself is none
  const uint32_t Index = add(T, Depth + 1) + 1;
  return Known[T] = Index;
}

uint32_t TypeBook::add(const DIType *T, unsigned Depth) {
  const uint8_t Form = formOf(T);
  const auto *C = dyn_cast<DICompositeType>(T);
  TableList::Bytes Rest;
  switch (Form) {
  case MEMLODE_TYPE_FORM_STRUCTURE:
  case MEMLODE_TYPE_FORM_CLASS:
  case MEMLODE_TYPE_FORM_UNION:
    record(C, Rest, Depth);
    break;
  case MEMLODE_TYPE_FORM_VARIANTS:
    variants(C, Rest, Depth);
    break;
  case MEMLODE_TYPE_FORM_ARRAY:
    array(C, Rest, Depth);
    break;
  default:
    break;
  }
  unsigned Flags = T->isForwardDecl() ? MEMLODE_TYPE_FLAG_INCOMPLETE : 0;
  if (C)
    Flags |= Uses.flagsOf(C);
  const bool Descriptor = Form == MEMLODE_TYPE_FORM_DESCRIPTOR;
  TableList::Bytes Entry;
  Entry.push_back(static_cast<char>(Form));
  putVarint(Entry, Form == MEMLODE_TYPE_FORM_VARIANTS ? 0 : Into.string(Names.name(T)) + 1);
  putVarint(Entry, Descriptor ? descriptorBytes(C) : TypeNames::bytes(T));
  putVarint(Entry, Flags);
  Entry += Rest;
  return Types.add(Entry);
}

void TypeBook::record(const DICompositeType *R, TableList::Bytes &Out, unsigned Depth) {
  SmallVector<Part, 16> Parts;
  for (const DINode *N : R->getElements()) {
    if (const auto *V = dyn_cast_or_null<DICompositeType>(N); V && V->getTag() == dwarf::DW_TAG_variant_part)
      Parts.push_back({MEMLODE_MEMBER_KIND_VARIANTS, "", 0, R->getSizeInBits(), describe(V, Depth)});
    const auto *D = dyn_cast_or_null<DIDerivedType>(N);
    if (!D || D->isStaticMember())
      continue;
    Part P{MEMLODE_MEMBER_KIND_FIELD, D->getName(), D->getOffsetInBits(), bitsOf(*D),
           describe(D->getBaseType(), Depth)};
    if (D->getTag() == dwarf::DW_TAG_inheritance) {
      // Where a virtual base is, is in the virtual table.
      const bool Virtual = (D->getFlags() & DINode::FlagVirtual) != 0;
      P.Kind = Virtual ? MEMLODE_MEMBER_KIND_VIRTUAL_BASE : MEMLODE_MEMBER_KIND_BASE;
      P.FirstBit = Virtual ? 0 : P.FirstBit;
    } else if (D->getTag() != dwarf::DW_TAG_member) {
      continue;
    } else if (D->getName().starts_with("_vptr")) {
      P.Kind = MEMLODE_MEMBER_KIND_VPTR;
    }
    if (D->isBitField())
      P.Flags |= MEMLODE_MEMBER_FLAG_BIT_FIELD;
    P.Flags |= Uses.flagsOf(R, P.FirstBit / 8);
    Parts.push_back(P);
  }
  putVarint(Out, Parts.size());
  for (const Part &P : Parts)
    put(Out, P, Into);
}

void TypeBook::variants(const DICompositeType *V, TableList::Bytes &Out, unsigned Depth) {
  SmallVector<Part, 8> Parts;
  const auto add = [&](uint8_t Kind, const DIDerivedType &D) {
    Parts.push_back({Kind, D.getName(), D.getOffsetInBits(), bitsOf(D), describe(D.getBaseType(), Depth)});
  };
  if (const DIDerivedType *D = V->getDiscriminator())
    add(MEMLODE_MEMBER_KIND_DISCRIMINANT, *D);
  for (const DINode *N : V->getElements())
    if (const auto *D = dyn_cast_or_null<DIDerivedType>(N)) {
      add(MEMLODE_MEMBER_KIND_VARIANT, *D);
      Parts.back().Value = dyn_cast_or_null<ConstantInt>(D->getDiscriminantValue());
    }
  putVarint(Out, Parts.size());
  for (const Part &P : Parts)
    put(Out, P, Into);
}

void TypeBook::array(const DICompositeType *A, TableList::Bytes &Out, unsigned Depth) {
  const uint32_t Element = describe(A->getBaseType(), Depth);
  SmallVector<uint64_t, 4> Extents;
  for (const DINode *N : A->getElements()) {
    const auto *Range = dyn_cast_or_null<DISubrange>(N);
    const auto *Count = Range ? dyn_cast_if_present<ConstantInt *>(Range->getCount()) : nullptr;
    Extents.push_back(Count && !Count->isNegative() ? Count->getZExtValue() : 0);
  }
  putVarint(Out, Element);
  putVarint(Out, Extents.size());
  for (uint64_t Extent : Extents)
    putVarint(Out, Extent);
}

void TypeBook::write(const Module &M) {
  TableList::Bytes OfSites, OfVariables;
  const auto Listed = Into.types();
  putVarint(OfSites, Listed.size());
  for (const auto &[Name, Bytes] : Listed) {
    const DIType *T = Names.byName(Name, Bytes);
    putVarint(OfSites, T && isWorthDescribing(T) ? describe(T) : 0);
  }
  uint64_t Variables = 0;
  SmallVector<DIGlobalVariableExpression *, 1> Told;
  for (const GlobalVariable &G : M.globals()) {
    Told.clear();
    G.getDebugInfo(Told);
    const DIType *T = Told.size() == 1 && !G.isDeclaration()
                          ? TypeNames::strip(Told.front()->getVariable()->getType())
                          : nullptr;
    const uint32_t Index = T && isWorthDescribing(T) ? describe(T) : 0;
    if (Index == 0)
      continue;
    ++Variables;
    putVarint(OfVariables, Into.string(G.getName()));
    putVarint(OfVariables, Index - 1);
  }
  if (Types.size() == 0)
    return;
  std::string Section;
  Types.write(Section);
  Section += OfSites;
  TableList::Bytes Count;
  putVarint(Count, Variables);
  Section += Count;
  Section += OfVariables;
  Into.section(MEMLODE_TABLE_SECTION_TYPES, Section);
}

} // namespace memlode
