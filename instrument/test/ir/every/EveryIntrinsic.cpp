//===- EveryIntrinsic.cpp - calls of LLVM's own intrinsics, for a test ----===//
//
// A plug-in that adds to a module, for each intrinsic of x86 and of all targets that may touch memory as far
// as LLVM knows, a function that calls it with its own arguments. Those that have several types it cannot
// make up, nor those that only certain functions may call; it writes `not called: NAME` for each of them that
// the module itself does not call.
//
//===----------------------------------------------------------------------===//
#include "LlvmCompat.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace llvm;
using namespace memlode;

namespace {

/// The intrinsics of a target have its name behind `llvm.`; those of all targets stand first in LLVM's list.
bool isOfAnyTarget(Intrinsic::ID ID) {
  const StringRef Name = Intrinsic::getBaseName(ID);
  return Name.starts_with("llvm.x86.") || !isTargetIntrinsic(ID);
}

/// Returns whether LLVM says that \p ID may touch memory that programs see.
bool mayTouch(LLVMContext &Context, Intrinsic::ID ID) {
  MemoryEffects Effects = effectsOf(Context, ID);
  return !Effects.doesNotAccessMemory() && !Effects.onlyAccessesInaccessibleMem();
}

/// Returns whether a function can be given a value of type \p T.
bool canBePassed(const Type *T) { return !T->isMetadataTy() && !T->isTokenTy() && !T->isX86_AMXTy(); }

class Everything : public PassInfoMixin<Everything> {
public:
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    std::set<Intrinsic::ID> Called;
    for (Function &F : M)
      for (Instruction &I : instructions(F))
        if (auto *II = dyn_cast<IntrinsicInst>(&I))
          Called.insert(II->getIntrinsicID());
    unsigned Count = 0;
    for (unsigned Number = 1; Number < Intrinsic::num_intrinsics; ++Number) {
      const auto ID = static_cast<Intrinsic::ID>(Number);
      if (!isOfAnyTarget(ID) || !mayTouch(M.getContext(), ID) || Called.count(ID))
        continue;
      if (Intrinsic::isOverloaded(ID))
        errs() << "not called: " << Intrinsic::getBaseName(ID) << "\n";
      else
        Count += call(M, ID);
    }
    errs() << Count << " intrinsics are called\n";
    return PreservedAnalyses::none();
  }

private:
  static bool call(Module &M, Intrinsic::ID ID) {
    LLVMContext &Context = M.getContext();
    Function *Intrinsic = declarationOf(M, ID);
    FunctionType *T = Intrinsic->getFunctionType();
    if (T->isVarArg() ||
        !all_of(T->params(), [](const Type *P) { return canBePassed(P) || P->isX86_AMXTy(); }))
      return false;
    SmallVector<Type *, 8> Passed;
    for (Type *P : T->params())
      if (canBePassed(P))
        Passed.push_back(P);
    auto *F = Function::Create(FunctionType::get(Type::getVoidTy(Context), Passed, false),
                               GlobalValue::ExternalLinkage, "calls." + Intrinsic->getName(), &M);
    IRBuilder<> B(BasicBlock::Create(Context, "", F));
    SmallVector<Value *, 8> Arguments;
    unsigned Next = 0;
    for (unsigned At = 0; At < T->getNumParams(); ++At) {
      Type *P = T->getParamType(At);
      Value *Argument = canBePassed(P) ? F->getArg(Next++) : nullptr;
      if (!Argument)
        Argument =
            B.CreateCall(declarationOf(M, Intrinsic::x86_tilezero_internal), {B.getInt16(1), B.getInt16(4)});
      else if (Intrinsic->hasParamAttribute(At, Attribute::ImmArg))
        Argument = P->isIntegerTy() ? ConstantInt::get(P, 1) : Constant::getNullValue(P);
      Arguments.push_back(Argument);
    }
    B.CreateCall(Intrinsic, Arguments);
    B.CreateRetVoid();
    if (!verifyFunction(*F))
      return true;
    F->eraseFromParent();
    errs() << "not called: " << Intrinsic->getName() << "\n";
    return false;
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "memlode-every-intrinsic", "1", [](PassBuilder &PB) {
            PB.registerPipelineParsingCallback(
                [](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
                  if (Name != "memlode-every-intrinsic")
                    return false;
                  MPM.addPass(Everything());
                  return true;
                });
          }};
}
