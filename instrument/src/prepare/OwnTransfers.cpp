//===- OwnTransfers.cpp ---------------------------------------------------===//

#include "prepare/OwnTransfers.h"

#include "find/CallEffects.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace memlode {

bool leadsFromArgument(const Value *Address) {
  SmallPtrSet<const Value *, 16> Seen;
  SmallVector<const Value *, 16> Pending{Address};
  while (!Pending.empty()) {
    const Value *V = Pending.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    if (isa<Argument>(V)) {
      if (V->getType()->isPtrOrPtrVectorTy())
        return true;
    } else if (const auto *Step = dyn_cast<GetElementPtrInst>(V)) {
      Pending.push_back(Step->getPointerOperand());
    } else if (const auto *Load = dyn_cast<LoadInst>(V)) {
      // Unoptimised code keeps its arguments in slots.
      if (const auto *Slot = dyn_cast<AllocaInst>(Load->getPointerOperand()))
        for (const User *U : Slot->users())
          if (const auto *Into = dyn_cast<StoreInst>(U); Into && Into->getPointerOperand() == Slot)
            Pending.push_back(Into->getValueOperand());
    } else if (isa<PHINode, SelectInst, CastInst, BinaryOperator, FreezeInst>(V)) {
      append_range(Pending, cast<Instruction>(V)->operand_values());
    }
  }
  return false;
}

namespace {

class Separator {
public:
  Separator(Module &M, function_ref<const TargetLibraryInfo &(Function &)> TLI) : M(M), TLI(TLI) {}

  void run() {
    markVersions();
    for (Function &F : M)
      if (!F.isDeclaration() && !F.hasAvailableExternallyLinkage() && isTransfer(F, TLI(F)))
        Pending.push_back(&F);
    for (GlobalAlias &A : M.aliases())
      if (Function *F = isOwn(A) ? dyn_cast<Function>(A.getAliasee()) : nullptr; F && isOther(*F))
        A.setAliasee(&second(*F));
    for (GlobalIFunc &I : M.ifuncs())
      if (Function *Resolver = isOwn(I) ? I.getResolverFunction() : nullptr; Resolver)
        for (Instruction &Step : instructions(*Resolver))
          for (Use &U : Step.operands())
            if (auto *F = dyn_cast<Function>(U.get()); F && isOther(*F))
              U.set(&second(*F));
    while (!Pending.empty())
      separateHelpers(*Pending.pop_back_val());
  }

private:
  static bool isOwn(const GlobalValue &Named) {
    return !Named.hasLocalLinkage() && isTransferName(Named.getName());
  }

  /// Returns whether \p F has code, and is no transfer, judging by its name.
  bool isOther(Function &F) const {
    return !F.isDeclaration() && !F.isInterposable() && !F.hasAvailableExternallyLinkage() && !F.isVarArg() &&
           !isTransfer(F, TLI(F));
  }

  Function &second(Function &F) {
    Function *&Found = Seconds[&F];
    if (!Found) {
      ValueToValueMapTy Values;
      Found = CloneFunction(&F, Values);
      Found->setName(F.getName() + ".transfer");
      Found->setLinkage(GlobalValue::InternalLinkage);
      Found->setVisibility(GlobalValue::DefaultVisibility);
      Found->setComdat(nullptr);
      Found->addFnAttr(TransferMark);
      Pending.push_back(Found);
    }
    return *Found;
  }

  void separateHelpers(Function &F) {
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallBase>(&I);
      Function *Callee = Call ? Call->getCalledFunction() : nullptr;
      if (Callee && isOther(*Callee) && any_of(Call->args(), [](const Use &U) {
            return U->getType()->isPointerTy() && leadsFromArgument(U);
          }))
        Call->setCalledFunction(&second(*Callee));
    }
  }

  /// Marks functions that assembly gives a version of such a name: `.symver my_copy, memcpy@@V1`.
  void markVersions() {
    SmallVector<StringRef, 8> Lines;
    StringRef(M.getModuleInlineAsm()).split(Lines, '\n');
    for (const StringRef Line : Lines) {
      const auto [Word, Rest] = Line.trim().split(' ');
      const auto [Local, Versioned] = Rest.split(',');
      const StringRef Name = Versioned.trim().take_until([](char C) { return C == '@'; });
      Function *F = Word == ".symver" ? M.getFunction(Local.trim()) : nullptr;
      if (F && !F->isDeclaration() && isTransferName(Name))
        F->addFnAttr(TransferMark, Name);
    }
  }

  Module &M;
  function_ref<const TargetLibraryInfo &(Function &)> TLI;
  DenseMap<Function *, Function *> Seconds;
  SmallVector<Function *, 8> Pending;
};

} // namespace

void separateTransfers(Module &M, function_ref<const TargetLibraryInfo &(Function &)> TLI) {
  Separator(M, TLI).run();
}

} // namespace memlode
