//===- Fortran.cpp --------------------------------------------------------===//
#include "names/Fortran.h"
#include "LlvmCompat.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr int64_t ElementBytes = 8;  ///< where the bytes of one element stand
constexpr int64_t RankByte = 20;     ///< where the number of dimensions stands
constexpr int64_t Bounds = 24;       ///< where the first dimension's words begin
constexpr int64_t Dimension = 3 * 8; ///< lower bound, extent, stride

} // namespace

bool isFortran(const Function &F) {
  const DISubprogram *SP = F.getSubprogram();
  return SP && SP->getUnit() && dwarf::isFortran(languageOf(*SP->getUnit()));
}

bool isDescriptor(const DICompositeType *A) {
  return A->getTag() == dwarf::DW_TAG_array_type && A->getRawDataLocation();
}

int64_t descriptorBytes(const DICompositeType *A) {
  return Bounds + Dimension * static_cast<int64_t>(A->getElements().size());
}

const DIType *descriptorPointer(const DICompositeType *A) {
  return DIDerivedType::get(A->getContext(), dwarf::DW_TAG_pointer_type, StringRef(), nullptr, 0, nullptr,
                            A->getBaseType(), uint64_t(64), 0, uint64_t(0), std::nullopt, std::nullopt,
                            DINode::FlagZero);
}

StringRef descriptorPart(int64_t Offset) {
  if (Offset < 8)
    return DescriptorData;
  if (Offset < Bounds)
    return "{kind}";
  constexpr StringLiteral Parts[] = {"{lower bound}", "{extent}", "{stride}"};
  return Parts[(Offset - Bounds) / 8 % 3];
}

Function *describedBytes(Module &M) {
  constexpr StringLiteral Name = "__memlode_described_bytes";
  if (Function *Known = M.getFunction(Name))
    return Known;
  LLVMContext &C = M.getContext();
  Type *Int64 = Type::getInt64Ty(C), *Int8 = Type::getInt8Ty(C);
  auto *F = Function::Create(FunctionType::get(Int64, {PointerType::getUnqual(C)}, false),
                             GlobalValue::PrivateLinkage, Name, M);
  F->setDoesNotThrow();
  Value *Descriptor = F->getArg(0);
  BasicBlock *Entry = BasicBlock::Create(C, "", F), *Head = BasicBlock::Create(C, "", F),
             *Body = BasicBlock::Create(C, "", F), *Done = BasicBlock::Create(C, "", F);
  IRBuilder<> B(Entry);
  auto at = [&](Value *Offset) { return B.CreatePtrAdd(Descriptor, Offset); };
  Value *One = B.CreateLoad(Int64, at(B.getInt64(ElementBytes)));
  Value *Rank = B.CreateZExt(B.CreateLoad(Int8, at(B.getInt64(RankByte))), Int64);
  B.CreateBr(Head);
  B.SetInsertPoint(Head);
  PHINode *Dimensions = B.CreatePHI(Int64, 2), *Bytes = B.CreatePHI(Int64, 2);
  B.CreateCondBr(B.CreateICmpULT(Dimensions, Rank), Body, Done);
  B.SetInsertPoint(Body);
  Value *Bound = B.CreateAdd(B.CreateMul(Dimensions, B.getInt64(Dimension)), B.getInt64(Bounds + 8));
  Value *More = B.CreateMul(Bytes, B.CreateLoad(Int64, at(Bound)));
  Value *Next = B.CreateAdd(Dimensions, B.getInt64(1));
  B.CreateBr(Head);
  Dimensions->addIncoming(B.getInt64(0), Entry);
  Dimensions->addIncoming(Next, Body);
  Bytes->addIncoming(One, Entry);
  Bytes->addIncoming(More, Body);
  B.SetInsertPoint(Done);
  B.CreateRet(Bytes);
  return F;
}

const Value *copiedInto(const AllocaInst &Slot) {
  constexpr unsigned MaxUses = 64;
  const Value *From = nullptr;
  unsigned Seen = 0;
  for (const User *U : Slot.users()) {
    if (++Seen > MaxUses)
      return nullptr;
    const Value *Copied = nullptr;
    if (auto *Copy = dyn_cast<MemTransferInst>(U); Copy && Copy->getRawDest() == &Slot) {
      Copied = Copy->getRawSource();
    } else if (auto *S = dyn_cast<StoreInst>(U); S && S->getPointerOperand() == &Slot) {
      auto *L = dyn_cast<LoadInst>(S->getValueOperand());
      if (!L)
        return nullptr;
      Copied = L->getPointerOperand();
    }
    if (Copied && From && Copied != From)
      return nullptr;
    From = Copied ? Copied : From;
  }
  return From;
}

StringRef derivedTypeName(StringRef Mangled) {
  // What Fortran names is lower case; capital letters say what follows: M a module, F a procedure, T a type.
  if (!Mangled.consume_front("_Q"))
    return "";
  size_t At = Mangled.find_last_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return At == StringRef::npos || Mangled[At] != 'T' ? "" : Mangled.drop_front(At + 1);
}

} // namespace memlode
