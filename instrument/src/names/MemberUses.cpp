//===- MemberUses.cpp -----------------------------------------------------===//

#include "names/MemberUses.h"

#include "memlode_format.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxSteps = 8; ///< from a member to where its address goes

/// Returns whether argument \p Number of \p Call is the object whose method it calls, through which
/// only the member is reached.
bool isObject(const CallBase &Call, unsigned Number) {
  const Function *Callee = Call.getCalledFunction();
  const DISubprogram *SP = Callee ? Callee->getSubprogram() : nullptr;
  if (!SP || Number > 1 || !SP->getType())
    return false;
  // The first of the types is that of the result.
  const DITypeRefArray Types = SP->getType()->getTypeArray();
  return Types && Types.size() > 1 && Types[1] && (Types[1]->getFlags() & DINode::FlagObjectPointer);
}

/// Returns whether \p Address leaves the function: it is given to another, stored, returned or made a number.
bool escapes(const Value &Address, unsigned Steps = 0) {
  for (const Use &U : Address.uses()) {
    const auto *By = dyn_cast<Instruction>(U.getUser());
    if (!By || isa<LoadInst, ICmpInst, IntrinsicInst>(By))
      continue;
    if (isa<StoreInst>(By)) {
      if (U.getOperandNo() == 0)
        return true;
    } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(By)) {
      if (U.getOperandNo() != 0)
        return true;
    } else if (const auto *Call = dyn_cast<CallBase>(By)) {
      if (Call->isArgOperand(&U) && !isObject(*Call, Call->getArgOperandNo(&U)))
        return true;
    } else if (isa<GetElementPtrInst, PHINode, SelectInst, FreezeInst, AddrSpaceCastInst>(By)) {
      // A member of the member has an entry of its own, and leads back here.
      const auto *Inner = dyn_cast<GetElementPtrInst>(By);
      if (!(Inner && isa<StructType>(Inner->getSourceElementType())) &&
          (Steps == MaxSteps || escapes(*By, Steps + 1)))
        return true;
    } else {
      return true;
    }
  }
  return false;
}

/// The record that \p T is, or points to.
const DICompositeType *recordBehind(const DIType *T) {
  const auto To = TypeNames::pointee(T);
  const auto *R = To ? dyn_cast_or_null<DICompositeType>(TypeNames::strip(*To)) : nullptr;
  return R && (R->getTag() == dwarf::DW_TAG_structure_type || R->getTag() == dwarf::DW_TAG_class_type)
             ? R
             : nullptr;
}

/// Returns whether the address of an \p Outer may be that of an \p Inner: its first member, or a base class.
bool holds(const DICompositeType *Outer, const DICompositeType *Inner, unsigned Depth = 0) {
  if (Outer == Inner)
    return true;
  if (!Outer || Depth > MaxSteps)
    return false;
  return any_of(Outer->getElements(), [&](const DINode *N) {
    const auto *D = dyn_cast_or_null<DIDerivedType>(N);
    const bool First = D && !D->isStaticMember() &&
                       (D->getTag() == dwarf::DW_TAG_inheritance ||
                        (D->getTag() == dwarf::DW_TAG_member && D->getOffsetInBits() == 0));
    return First &&
           holds(dyn_cast_or_null<DICompositeType>(TypeNames::strip(D->getBaseType())), Inner, Depth + 1);
  });
}

} // namespace

void MemberUses::remember(const Function &F, TypeNames &Names) {
  PointsTo.clear();
  for (const Instruction &I : instructions(F))
    for (const DbgVariableRecord &R : filterDbgVars(I.getDbgRecordRange()))
      if (R.getType() != DbgVariableRecord::LocationType::Value && R.getVariable())
        if (const DICompositeType *To = recordBehind(R.getVariable()->getType()))
          PointsTo.try_emplace(R.getAddress(), To);
  for (const Instruction &I : instructions(F))
    if (const auto *Member = dyn_cast<GetElementPtrInst>(&I);
        Member && isa<StructType>(Member->getSourceElementType()))
      look(*Member, Names);
}

void MemberUses::look(const GetElementPtrInst &Member, TypeNames &Names) {
  if (Member.getNumIndices() > 1 && escapes(Member))
    escape(Member, Names);
  const DICompositeType *Record = Names.byStruct(cast<StructType>(Member.getSourceElementType()));
  if (!Record)
    return;
  OfRecords[Record] |= MEMLODE_TYPE_FLAG_WATCHED;
  const auto *Load = dyn_cast<LoadInst>(Member.getPointerOperand());
  const DICompositeType *Said = Load ? PointsTo.lookup(Load->getPointerOperand()) : nullptr;
  if (Said && !Said->isForwardDecl() && Names.name(Said) != Names.name(Record) && !holds(Said, Record) &&
      !holds(Record, Said)) {
    OfRecords[Said] |= MEMLODE_TYPE_FLAG_CAST;
    OfRecords[Record] |= MEMLODE_TYPE_FLAG_CAST;
  }
}

void MemberUses::escape(const GetElementPtrInst &Member, TypeNames &Names) {
  const DataLayout &Layout = Member.getModule()->getDataLayout();
  const GetElementPtrInst *At = &Member;
  for (unsigned Step = 0; At && Step != MaxSteps; ++Step) {
    const auto *Type = dyn_cast<StructType>(At->getSourceElementType());
    const auto *Index = At->getNumIndices() > 1 ? dyn_cast<ConstantInt>(At->getOperand(2)) : nullptr;
    const DICompositeType *Record = Type ? Names.byStruct(Type) : nullptr;
    if (Record && Index) {
      const TypeSize Offset =
          Layout.getStructLayout(const_cast<StructType *>(Type))->getElementOffset(Index->getZExtValue());
      OfMembers[{Record, Offset.getKnownMinValue()}] |= MEMLODE_MEMBER_FLAG_ESCAPES;
    }
    At = dyn_cast<GetElementPtrInst>(At->getPointerOperand());
  }
}

unsigned MemberUses::flagsOf(const DICompositeType *Record) const { return OfRecords.lookup(Record); }

unsigned MemberUses::flagsOf(const DICompositeType *Record, uint64_t Offset) const {
  return OfMembers.lookup({Record, Offset});
}

} // namespace memlode
