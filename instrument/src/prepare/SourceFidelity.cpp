//===- SourceFidelity.cpp -------------------------------------------------===//

#include "prepare/SourceFidelity.h"

#include "find/CallEffects.h"
#include "prepare/HiddenCalls.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace memlode {

/// Named metadata: the linker of an LTO build sees it, too.
static constexpr const char *ModuleMark = "memlode.aswritten";

Registers registersOf(const Function &F) {
  Registers Found;
  for (const Instruction &I : instructions(F))
    if (const auto *Slot = dyn_cast<AllocaInst>(&I))
      if (isAllocaPromotable(Slot))
        Found.insert(Slot);
  return Found;
}

void inlineDemanded(Module &M, ModuleAnalysisManager &MAM) {
  MAM.invalidate(M, AlwaysInlinerPass().run(M, MAM));
}

/// A call may change the cursor, whatever is said or will be found out of the function that it calls: an
/// optimiser must never carry the value across.
static void pinCursor(Instruction &I) {
  const Value *Pointer = getLoadStorePointerOperand(&I);
  const auto *Address = dyn_cast_or_null<IntrinsicInst>(Pointer);
  if (!Address || Address->getIntrinsicID() != Intrinsic::threadlocal_address ||
      Address->getArgOperand(0)->getName() != "__memlode_cursor")
    return;
  if (auto *Load = dyn_cast<LoadInst>(&I))
    Load->setVolatile(true);
  else
    cast<StoreInst>(I).setVolatile(true);
}

/// `pure` and its like stop being true of a function that records, and calls of it would be merged or
/// dropped.
static void forgetPurity(CallBase &Call) {
  Call.removeFnAttr(Attribute::Memory);
  if (Function *Callee = Call.getCalledFunction())
    Callee->removeFnAttr(Attribute::Memory);
}

/// A call of fmod with known operands would become an `frem`, which touches no memory as far as an optimiser
/// knows: it would move to where the cursor has not been handed over. lrint and others become intrinsics.
static void keepCallOfLibm(CallBase &Call) {
  const FunctionType *Type = Call.getFunctionType();
  if (Type->getReturnType()->isFPOrFPVectorTy() ||
      any_of(Type->params(), [](const llvm::Type *T) { return T->isFPOrFPVectorTy(); }))
    Call.addFnAttr(Attribute::NoBuiltin);
}

/// Makes one of the HiddenCalls opaque. It holds a single instruction, so an optimiser would find that it
/// touches no memory, and move its calls past loads and stores of the cursor.
static void keepHiddenCall(Function &Callee) {
  Instruction *End = Callee.getEntryBlock().getTerminator();
  if (const auto *Last = dyn_cast_or_null<CallInst>(End->getPrevNode()); Last && Last->isInlineAsm())
    return;
  FunctionType *Type = FunctionType::get(llvm::Type::getVoidTy(Callee.getContext()), false);
  CallInst::Create(Type, InlineAsm::get(Type, "", "~{memory}", true), "", End->getIterator());
}

void keepThroughOptimisation(Function &F) {
  // Entry and exit name the frame of the code they stand in: a body inlined elsewhere would speak of another.
  F.removeFnAttr(Attribute::AlwaysInline);
  F.addFnAttr(Attribute::NoInline);
  for (Instruction &I : instructions(F)) {
    pinCursor(I);
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || isa<IntrinsicInst>(Call))
      continue;
    // `flatten` demands it of calls whose callee will be known later only.
    Call->removeFnAttr(Attribute::AlwaysInline);
    if (!mayRecord(*Call))
      continue;
    forgetPurity(*Call);
    keepCallOfLibm(*Call);
    if (Function *Callee = Call->getCalledFunction(); Callee && HiddenCalls::isOne(*Callee))
      keepHiddenCall(*Callee);
  }
}

void markAsWritten(Module &M) { M.getOrInsertNamedMetadata(ModuleMark); }

bool isAsWritten(const Module &M) { return M.getNamedMetadata(ModuleMark) != nullptr; }

} // namespace memlode
