//===- HiddenCalls.cpp ----------------------------------------------------===//

#include "prepare/HiddenCalls.h"

#include "LlvmCompat.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumHiddenCalls, "Instructions that may become calls");

namespace memlode {

namespace {

/// Marks the functions that are made here.
constexpr const char *HiddenCall = "memlode-hidden-call";

/// The widest integers and atomics that processors have instructions for.
constexpr unsigned WordBits = 64;

bool hasFeature(const Function &F, StringRef Feature) {
  SmallVector<StringRef, 64> Features;
  F.getFnAttribute("target-features").getValueAsString().split(Features, ',');
  // What comes last holds.
  for (StringRef Each : reverse(Features))
    if (Each.size() > 1 && Each.drop_front() == Feature)
      return Each.front() == '+';
  return false;
}

bool isArm(const Function &F) { return targetOf(*F.getParent()).isAArch64(); }

bool isSoft(const Function &F) {
  const Attribute Soft = F.getFnAttribute("use-soft-float");
  return Soft.isValid() && Soft.getValueAsBool();
}

/// Returns whether numbers of type \p T are computed with by functions of the compiler's library.
bool isEmulated(const Type *T, const Function &F) {
  T = T->getScalarType();
  if (!T->isFloatingPointTy())
    return false;
  if (isSoft(F) || T->isFP128Ty() || T->isPPC_FP128Ty())
    return true;
  if (T->isHalfTy())
    return !isArm(F) && !hasFeature(F, "avx512fp16");
  return T->isBFloatTy() && !isArm(F);
}

/// Returns whether even the sign of a number of type \p T is changed in a wider one, as LLVM 19 does.
bool isPromoted(const Type *T, const Function &F) {
  return T->getScalarType()->isHalfTy() && isEmulated(T, F);
}

/// Returns whether \p I has to do with numbers for which \p Is holds.
template <typename Test> bool concerns(const Instruction &I, Test Is) {
  return Is(I.getType()) || any_of(I.operands(), [&](const Use &U) { return Is(U->getType()); });
}

bool isWide(const Type *T) { return T->isIntOrIntVectorTy() && T->getScalarSizeInBits() > WordBits; }

bool isFloating(const Type *T) {
  if (const auto *S = dyn_cast<StructType>(T))
    return any_of(S->elements(), isFloating);
  return T->isFPOrFPVectorTy();
}

bool isInline(Intrinsic::ID Is) { return Is == Intrinsic::memcpy_inline || Is == Intrinsic::memset_inline; }

/// Copies and fills of a known length that the code generator writes out, with words of eight bytes at least.
bool isWrittenOut(const AnyMemIntrinsic &II) {
  if (isInline(II.getIntrinsicID()))
    return true;
  const Function &F = *II.getFunction();
  const auto *Length = dyn_cast<ConstantInt>(II.getLength());
  if (!Length || !isa<MemIntrinsic>(II) || F.hasOptNone() || hasFeature(F, "strict-align"))
    return Length && Length->isZero();
  return Length->getValue().ule(F.hasOptSize() ? 32 : 64);
}

/// An atomic access that takes a lock or a function of the compiler's library.
bool isLibraryAtomic(const Instruction &I, Type *T, Align A) {
  const DataLayout &DL = I.getModule()->getDataLayout();
  const uint64_t Bytes = DL.getTypeStoreSize(T).getFixedValue();
  if (Bytes * 8 > WordBits || A.value() < Bytes)
    return true;
  if (isa<LoadInst, StoreInst>(I))
    return false;
  return hasFeature(*I.getFunction(), "outline-atomics") || isEmulated(T, *I.getFunction());
}

bool mayBecomeCall(const LoadInst &I) {
  return I.isAtomic() && isLibraryAtomic(I, I.getType(), I.getAlign());
}

bool mayBecomeCall(const StoreInst &I) {
  return I.isAtomic() && isLibraryAtomic(I, I.getValueOperand()->getType(), I.getAlign());
}

/// Returns whether the address of \p Variable is looked up at run time, as far as the module shows
/// how it is linked.
bool isFoundByCall(const GlobalVariable &Variable) {
  const Module &M = *Variable.getParent();
  if (targetOf(M).hasDefaultEmulatedTLS())
    return true;
  switch (Variable.getThreadLocalMode()) {
  case GlobalValue::GeneralDynamicTLSModel:
  case GlobalValue::LocalDynamicTLSModel:
    return M.getPICLevel() != PICLevel::NotPIC && M.getPIELevel() == PIELevel::Default;
  default:
    return false;
  }
}

/// Rounding has instructions on every Arm, and on x86 since SSE4.1.
bool hasRounding(const IntrinsicInst &II) {
  const Type *T = II.getType()->getScalarType();
  const Function &F = *II.getFunction();
  if (!T->isFloatTy() && !T->isDoubleTy())
    return false;
  if (isArm(F))
    return true;
  // Flags of instruction sets imply each other only in the code generator.
  return any_of(ArrayRef<StringRef>{"sse4.1", "sse4.2", "avx", "avx2", "avx512f"},
                [&](StringRef Feature) { return hasFeature(F, Feature); });
}

/// The strict forms of operations that processors do with one instruction.
bool isConstrainedArithmetic(const IntrinsicInst &II) {
  switch (II.getIntrinsicID()) {
  case Intrinsic::experimental_constrained_fadd:
  case Intrinsic::experimental_constrained_fsub:
  case Intrinsic::experimental_constrained_fmul:
  case Intrinsic::experimental_constrained_fdiv:
  case Intrinsic::experimental_constrained_sqrt:
  case Intrinsic::experimental_constrained_fcmp:
  case Intrinsic::experimental_constrained_fcmps:
  case Intrinsic::experimental_constrained_fpext:
  case Intrinsic::experimental_constrained_fptrunc:
  case Intrinsic::experimental_constrained_fptosi:
  case Intrinsic::experimental_constrained_fptoui:
  case Intrinsic::experimental_constrained_sitofp:
  case Intrinsic::experimental_constrained_uitofp:
    return true;
  default:
    return false;
  }
}

bool mayBecomeCall(const IntrinsicInst &II) {
  const Function &F = *II.getFunction();
  if (const auto *Memory = dyn_cast<AnyMemIntrinsic>(&II))
    return !isWrittenOut(*Memory);
  if (isa<ConstrainedFPIntrinsic>(II))
    return !isConstrainedArithmetic(II) ||
           concerns(II, [&](const Type *T) { return isEmulated(T, F) || isWide(T); });
  switch (II.getIntrinsicID()) {
  case Intrinsic::threadlocal_address: {
    const auto *Variable = dyn_cast<GlobalVariable>(II.getArgOperand(0)->stripPointerCasts());
    return !Variable || isFoundByCall(*Variable);
  }
  case Intrinsic::trap:
  case Intrinsic::debugtrap:
  case Intrinsic::ubsantrap:
    return II.hasFnAttr("trap-func-name");
  case Intrinsic::clear_cache:
  case Intrinsic::init_trampoline:
  case Intrinsic::get_fpenv:
  case Intrinsic::set_fpenv:
  case Intrinsic::reset_fpenv:
  case Intrinsic::get_fpmode:
  case Intrinsic::set_fpmode:
  case Intrinsic::reset_fpmode:
  case Intrinsic::xray_customevent:
  case Intrinsic::xray_typedevent:
  case Intrinsic::instrprof_increment:
  case Intrinsic::sdiv_fix:
  case Intrinsic::sdiv_fix_sat:
  case Intrinsic::udiv_fix:
  case Intrinsic::udiv_fix_sat:
    return true;
  // Moves of bits.
  case Intrinsic::fabs:
  case Intrinsic::copysign:
  case Intrinsic::is_fpclass:
    return isSoft(F) || isPromoted(II.getArgOperand(0)->getType(), F);
  case Intrinsic::smul_with_overflow:
    return isWide(II.getArgOperand(0)->getType());
  case Intrinsic::masked_load:
  case Intrinsic::masked_store:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_scatter:
  case Intrinsic::masked_expandload:
  case Intrinsic::masked_compressstore:
    return false;
  case Intrinsic::sqrt:
    return isEmulated(II.getType(), F);
  case Intrinsic::floor:
  case Intrinsic::ceil:
  case Intrinsic::trunc:
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::roundeven:
    return !hasRounding(II);
  case Intrinsic::fma:
    return isEmulated(II.getType(), F) || II.getType()->isX86_FP80Ty() || !(isArm(F) || hasFeature(F, "fma"));
  case Intrinsic::fmuladd: // two instructions where there is not one
  case Intrinsic::minnum:
  case Intrinsic::maxnum:
  case Intrinsic::minimum:
  case Intrinsic::maximum:
  case Intrinsic::canonicalize:
  case Intrinsic::arithmetic_fence:
  case Intrinsic::vector_reduce_fadd:
  case Intrinsic::vector_reduce_fmul:
  case Intrinsic::vector_reduce_fmax:
  case Intrinsic::vector_reduce_fmin:
  case Intrinsic::vector_reduce_fmaximum:
  case Intrinsic::vector_reduce_fminimum:
  case Intrinsic::fptosi_sat:
  case Intrinsic::fptoui_sat:
    return concerns(II, [&](const Type *T) {
      return isEmulated(T, F) || T->getScalarType()->isX86_FP80Ty() || isWide(T);
    });
  default:
    break;
  }
  if (II.isAssumeLikeIntrinsic() || II.isDebugOrPseudoInst() || II.getCalledFunction()->isTargetIntrinsic() ||
      II.getCalledFunction()->getName().starts_with("llvm.vector."))
    return false;
  // Whatever else computes with numbers that have a fraction has a function in the library.
  return concerns(II, isFloating);
}

/// Returns whether \p I computes with floating-point numbers, or converts them.
bool isFloatArithmetic(const Instruction &I) {
  switch (I.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
  case Instruction::FDiv:
  case Instruction::FCmp:
  case Instruction::FPExt:
  case Instruction::FPTrunc:
  case Instruction::FPToSI:
  case Instruction::FPToUI:
  case Instruction::SIToFP:
  case Instruction::UIToFP:
    return true;
  default:
    return false;
  }
}

/// Returns whether the call of \p I is in the right place without us: the code generator orders it with
/// memory.
bool isOrdered(const Instruction &I) {
  if (isa<ConstrainedFPIntrinsic>(I))
    return false;
  if (const auto *II = dyn_cast<IntrinsicInst>(&I))
    return !II->onlyReadsMemory();
  return isa<AllocaInst>(I) || I.isAtomic();
}

/// A call of a function of libm that sets no errno: the code generator takes it for the intrinsic.
/// Functions with an instruction on all processors are not included.
bool isPureLibraryCall(const Instruction &I, const TargetLibraryInfo &TLI) {
  const auto *Call = dyn_cast<CallInst>(&I);
  LibFunc Is;
  if (!Call || isa<IntrinsicInst>(Call) || !Call->onlyReadsMemory() || !isFloating(Call->getType()) ||
      Call->isNoBuiltin() || !TLI.getLibFunc(*Call, Is) || !TLI.hasOptimizedCodeGen(Is))
    return false;
  const StringRef Name = Call->getCalledFunction()->getName();
  return !Name.starts_with("fabs") && !Name.starts_with("sqrt") && !Name.starts_with("copysign");
}

} // namespace

bool mayBecomeCall(const Instruction &I) {
  const Function &F = *I.getFunction();
  switch (I.getOpcode()) {
  case Instruction::FRem:
    return true;
  case Instruction::SDiv:
  case Instruction::UDiv:
  case Instruction::SRem:
  case Instruction::URem:
    return isWide(I.getType());
  case Instruction::Alloca:
    return F.hasFnAttribute("split-stack") && !cast<AllocaInst>(I).isStaticAlloca();
  case Instruction::Load:
    return mayBecomeCall(cast<LoadInst>(I));
  case Instruction::Store:
    return mayBecomeCall(cast<StoreInst>(I));
  case Instruction::AtomicRMW: {
    const auto &Update = cast<AtomicRMWInst>(I);
    return isLibraryAtomic(I, I.getType(), Update.getAlign());
  }
  case Instruction::AtomicCmpXchg: {
    const auto &Exchange = cast<AtomicCmpXchgInst>(I);
    return isLibraryAtomic(I, Exchange.getNewValOperand()->getType(), Exchange.getAlign());
  }
  case Instruction::Call:
    return isa<IntrinsicInst>(I) && mayBecomeCall(cast<IntrinsicInst>(I));
  default:
    break;
  }
  if (I.getOpcode() == Instruction::FNeg)
    return isPromoted(I.getType(), F);
  if (!isFloatArithmetic(I))
    return false;
  // The oldest and the newest unit know nothing of each other's numbers.
  const auto isHalf = [](const Type *T) { return T->getScalarType()->isHalfTy(); };
  const auto isExtended = [](const Type *T) { return T->getScalarType()->isX86_FP80Ty(); };
  return (concerns(I, isHalf) && concerns(I, isExtended)) ||
         concerns(I, [&](const Type *T) { return isEmulated(T, F) || isWide(T); });
}

const GlobalVariable *threadLocalOf(const Value *V) {
  const auto *Call = dyn_cast<CallInst>(V);
  if (!Call)
    return nullptr;
  if (const Function *Callee = Call->getCalledFunction(); Callee && HiddenCalls::isOne(*Callee))
    Call = dyn_cast<CallInst>(&Callee->getEntryBlock().front());
  const auto *II = dyn_cast_or_null<IntrinsicInst>(Call);
  return II && II->getIntrinsicID() == Intrinsic::threadlocal_address
             ? dyn_cast<GlobalVariable>(II->getArgOperand(0))
             : nullptr;
}

bool HiddenCalls::isOne(const Function &F) { return F.hasFnAttribute(HiddenCall); }

/// Instructions may name a thread's own variable without asking for its address first.
bool HiddenCalls::nameThreadLocals(Function &F, const DenseSet<const BasicBlock *> &Dormant) {
  bool Changed = false;
  for (GlobalVariable &Variable : M.globals()) {
    if (!Variable.isThreadLocal() || !isFoundByCall(Variable))
      continue;
    Changed |= convertUsersOfConstantsToInstructions({&Variable}, &F);
    SmallVector<Use *, 4> Uses;
    for (Use &U : Variable.uses()) {
      const auto *User = dyn_cast<Instruction>(U.getUser());
      const auto *II = dyn_cast_or_null<IntrinsicInst>(User);
      const bool IsAddress = II && II->getIntrinsicID() == Intrinsic::threadlocal_address;
      if (User && User->getFunction() == &F && !Dormant.contains(User->getParent()) && !IsAddress)
        Uses.push_back(&U);
    }
    for (Use *U : Uses) {
      auto *User = cast<Instruction>(U->getUser());
      const auto *Phi = dyn_cast<PHINode>(User);
      IRBuilder<> B(Phi ? Phi->getIncomingBlock(*U)->getTerminator() : User);
      Value *Address = B.CreateThreadLocalAddress(&Variable);
      U->set(Address);
      Changed = true;
    }
  }
  return Changed;
}

/// A function with the effect of \p I on \p Operands, which become its arguments.
Function *HiddenCalls::functionFor(const Instruction &I, ArrayRef<Value *> Operands) {
  const Function &F = *I.getFunction();
  std::string Key;
  raw_string_ostream OS(Key);
  OS << I.getOpcode() << ' ' << I.getRawSubclassOptionalData() << ' ';
  I.getType()->print(OS);
  if (const auto *Compare = dyn_cast<CmpInst>(&I))
    OS << ' ' << Compare->getPredicate();
  for (const Use &U : I.operands()) {
    OS << ' ';
    if (is_contained(Operands, U.get()))
      U->getType()->print(OS);
    else
      U->printAsOperand(OS, /*PrintType=*/true, &M);
  }
  OS << ' ' << F.getAttributes().getFnAttrs().getAsString();
  Function *&Found = Made[Key];
  if (Found)
    return Found;

  SmallVector<Type *, 4> Types;
  for (const Value *V : Operands)
    Types.push_back(V->getType());
  const auto *Call = dyn_cast<CallInst>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  const StringRef What = Callee ? Callee->getName() : StringRef(I.getOpcodeName());
  Found = Function::Create(FunctionType::get(I.getType(), Types, false), GlobalValue::InternalLinkage,
                           "memlode." + What, M);
  // For the same processor and the same floating-point environment, and without what is added to entries.
  AttrBuilder Attributes(M.getContext());
  for (const Attribute &A : F.getAttributes().getFnAttrs())
    if (A.isStringAttribute() && !A.getKindAsString().contains("instrument") &&
        !A.getKindAsString().starts_with("fentry") && !A.getKindAsString().starts_with("patchable") &&
        !A.getKindAsString().starts_with("xray"))
      Attributes.addAttribute(A);
  Found->addFnAttrs(Attributes);
  if (F.hasFnAttribute(Attribute::StrictFP))
    Found->addFnAttr(Attribute::StrictFP);
  Found->setUWTableKind(F.getUWTableKind());
  Found->addFnAttr(Attribute::NoInline);
  Found->addFnAttr(HiddenCall);
  Found->addFnAttr("memlode");

  IRBuilder<> B(BasicBlock::Create(M.getContext(), "", Found));
  Instruction *Copy = I.clone();
  Copy->dropUnknownNonDebugMetadata(LLVMContext::MD_fpmath);
  Copy->setDebugLoc(DebugLoc());
  for (Use &U : Copy->operands())
    if (const auto *At = find(Operands, U.get()); At != Operands.end())
      U.set(Found->getArg(At - Operands.begin()));
  B.Insert(Copy);
  if (Copy->getType()->isVoidTy())
    B.CreateRetVoid();
  else
    B.CreateRet(Copy);
  return Found;
}

bool HiddenCalls::open(Function &F, const DenseSet<const BasicBlock *> &Dormant,
                       const TargetLibraryInfo &TLI) {
  bool Changed = nameThreadLocals(F, Dormant);
  SmallVector<Instruction *, 16> Found;
  for (BasicBlock &B : F)
    if (!Dormant.contains(&B))
      for (Instruction &I : B) {
        if (mayBecomeCall(I) && !isOrdered(I))
          Found.push_back(&I);
        else if (isPureLibraryCall(I, TLI))
          cast<CallInst>(I).addFnAttr(Attribute::NoBuiltin);
      }
  for (Instruction *I : Found) {
    SmallVector<Value *, 4> Operands;
    for (Value *V : I->operands())
      if (isa<Instruction, Argument>(V) && !is_contained(Operands, V))
        Operands.push_back(V);
    CallInst *Call = CallInst::Create(functionFor(*I, Operands), Operands, "", I->getIterator());
    Call->setDebugLoc(I->getDebugLoc());
    if (F.hasFnAttribute(Attribute::StrictFP))
      Call->addFnAttr(Attribute::StrictFP);
    Call->takeName(I);
    I->replaceAllUsesWith(Call);
    I->eraseFromParent();
    ++NumHiddenCalls;
    Changed = true;
  }
  return Changed;
}

} // namespace memlode
