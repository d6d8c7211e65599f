//===- CallEffects.cpp ----------------------------------------------------===//

#include "find/CallEffects.h"

#include "prepare/HiddenCalls.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

static Transfer transferNamed(StringRef Name) {
  return StringSwitch<Transfer>(Name)
      .Case("memcpy", Transfer::Copy)
      .Case("memmove", Transfer::Copy)
      .Case("mempcpy", Transfer::Copy)
      .Case("__memcpy_chk", Transfer::Copy)
      .Case("__memmove_chk", Transfer::Copy)
      .Case("__mempcpy_chk", Transfer::Copy)
      .Case("bcopy", Transfer::CopyFrom)
      .Case("memset", Transfer::Fill)
      .Case("__memset_chk", Transfer::Fill)
      .Case("bzero", Transfer::Clear)
      .Default(Transfer::None);
}

StringRef libraryName(const Function &F, const TargetLibraryInfo &TLI) {
  LibFunc Known;
  if (F.hasLocalLinkage() || F.isIntrinsic() || !TLI.getLibFunc(F, Known))
    return {};
  return GlobalValue::dropLLVMManglingEscape(F.getName());
}

/// Returns whether \p Call has the arguments of a transfer.
static bool fits(const CallBase &Call, Transfer Is) {
  const auto isPointer = [&](unsigned At) { return Call.getArgOperand(At)->getType()->isPointerTy(); };
  const auto isInteger = [&](unsigned At) { return Call.getArgOperand(At)->getType()->isIntegerTy(); };
  switch (Is) {
  case Transfer::None:
    return false;
  case Transfer::Clear:
    return Call.arg_size() == 2 && isPointer(0) && isInteger(1);
  case Transfer::Fill:
    return Call.arg_size() >= 3 && isPointer(0) && isInteger(1) && isInteger(2);
  case Transfer::Copy:
  case Transfer::CopyFrom:
    return Call.arg_size() >= 3 && isPointer(0) && isPointer(1) && isInteger(2);
  }
  llvm_unreachable("every transfer has its arguments");
}

/// The transfer that \p Call is by a second name which its own unit gives a function: an alias or an ifunc.
static Transfer transferBySecondName(const CallBase &Call) {
  const auto *Named = dyn_cast<GlobalValue>(Call.getCalledOperand());
  if (!Named || !isa<GlobalAlias, GlobalIFunc>(Named) || Named->hasLocalLinkage())
    return Transfer::None;
  const Transfer Is = transferNamed(GlobalValue::dropLLVMManglingEscape(Named->getName()));
  return fits(Call, Is) ? Is : Transfer::None;
}

Transfer libraryTransfer(const CallBase &Call, const TargetLibraryInfo &TLI) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee)
    return transferBySecondName(Call);
  const Transfer Named = transferNamed(Callee->getFnAttribute(TransferMark).getValueAsString());
  return Named != Transfer::None ? Named : transferNamed(libraryName(*Callee, TLI));
}

bool isTransferName(StringRef Name) {
  return transferNamed(GlobalValue::dropLLVMManglingEscape(Name)) != Transfer::None;
}

bool isTransfer(const Function &F, const TargetLibraryInfo &TLI) {
  return F.hasFnAttribute(TransferMark) || transferNamed(libraryName(F, TLI)) != Transfer::None;
}

static bool mayRecord(const CallBase &Call) {
  if (const auto *Asm = dyn_cast<InlineAsm>(Call.getCalledOperand()))
    // Assembly may switch stacks or call; an empty one is only a barrier for the compiler.
    return !Asm->getAsmString().empty() && (Asm->hasSideEffects() || !Call.doesNotAccessMemory());
  if (const Function *Callee = Call.getCalledFunction();
      Callee && Callee->getName().starts_with("__memlode_extent_"))
    return false;
  // Those of a target are instructions, whatever LLVM says of them.
  if (const Function *Callee = Call.getCalledFunction(); Callee && Callee->getName().starts_with("llvm.x86."))
    return mayBecomeCall(Call);
  return !isa<IntrinsicInst>(Call) || !Call.hasFnAttr(Attribute::NoCallback) || mayBecomeCall(Call);
}

bool mayRecord(const Instruction &I) {
  const auto *Call = dyn_cast<CallBase>(&I);
  return Call ? mayRecord(*Call) : mayBecomeCall(I);
}

bool isWorthAFrame(const CallBase &Call, const TargetLibraryInfo &TLI) {
  if (!mayRecord(Call) || isa<IntrinsicInst>(Call))
    return false;
  const Function *Callee = Call.getCalledFunction();
  if (!Callee)
    return true;
  const auto computes = [](const Type *T) { return T->isFloatingPointTy() || T->isIntegerTy(); };
  const bool OnlyComputes = Callee->getReturnType()->isFloatingPointTy() &&
                            all_of(Callee->getFunctionType()->params(), computes) &&
                            !libraryName(*Callee, TLI).empty();
  return !OnlyComputes && !HiddenCalls::isOne(*Callee);
}

} // namespace memlode
