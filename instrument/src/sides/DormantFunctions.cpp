//===- DormantFunctions.cpp -----------------------------------------------===//

#include "sides/DormantFunctions.h"

#include "find/CallEffects.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumApart, "Dormant sides that are functions of their own");
STATISTIC(NumUnasked, "Calls from a dormant side to another");

namespace memlode {

/// Returns whether \p F runs when the image is loaded.
static bool isConstructor(const Function &F) {
  const GlobalVariable *List = F.getParent()->getGlobalVariable("llvm.global_ctors");
  const auto *Entries =
      List && List->hasInitializer() ? dyn_cast<ConstantArray>(List->getInitializer()) : nullptr;
  return Entries && any_of(Entries->operands(), [&](const Use &Entry) {
           return cast<Constant>(Entry)->getAggregateElement(1) == &F;
         });
}

bool mayStandApart(const Function &F) {
  // AddressSanitizer adds a call in front of each return of these, which is then behind a call that must be
  // the last.
  if (F.hasFnAttribute(Attribute::SanitizeAddress) && isConstructor(F))
    return false;
  // Code that is added to entries and exits later would run twice.
  for (const char *Attribute : {"instrument-function-entry-inlined", "instrument-function-exit-inlined",
                                "fentry-call", "patchable-function-entry", "function-instrument"})
    if (F.hasFnAttribute(Attribute))
      return false;
  // LLVM 19 copies what lies in the caller's frame over itself when it is passed on.
  return !F.isVarArg() && none_of(F.args(), [](const Argument &A) { return A.hasByValAttr(); });
}

void jumpTo(Function &To, BasicBlock &From) {
  Function &F = *From.getParent();
  SmallVector<Value *, 8> Arguments;
  SmallVector<AttributeSet, 8> Attributes;
  for (Argument &A : F.args()) {
    Arguments.push_back(&A);
    Attributes.push_back(F.getAttributes().getParamAttrs(A.getArgNo()));
  }
  IRBuilder<> B(&From);
  CallInst *Call = B.CreateCall(&To, Arguments);
  Call->setTailCallKind(CallInst::TCK_MustTail);
  Call->setCallingConv(F.getCallingConv());
  Call->setAttributes(
      AttributeList::get(F.getContext(), AttributeSet(), F.getAttributes().getRetAttrs(), Attributes));
  if (Call->getType()->isVoidTy())
    B.CreateRetVoid();
  else
    B.CreateRet(Call);
}

/// Makes \p New invisible outside the module.
static void makeLocal(Function &New, const Twine &Name) {
  New.setLinkage(GlobalValue::InternalLinkage);
  New.setVisibility(GlobalValue::DefaultVisibility);
  New.setDLLStorageClass(GlobalValue::DefaultStorageClass);
  New.setDSOLocal(true);
  New.setPrefixData(nullptr);
  New.setPrologueData(nullptr);
  New.setName(Name);
}

/// A function as \p F, without a body.
static Function *another(const Function &F, Module &M) {
  Function *New = Function::Create(F.getFunctionType(), F.getLinkage(), F.getAddressSpace(), "", &M);
  New->copyAttributesFrom(&F);
  New->setPersonalityFn(nullptr);
  New->setComdat(const_cast<Comdat *>(F.getComdat()));
  return New;
}

Versions standApart(Function &F) {
  Versions Made;
  ValueToValueMapTy Copies;
  Made.Apart = CloneFunction(&F, Copies);
  Made.Apart->setComdat(F.getComdat());
  makeLocal(*Made.Apart, F.getName() + ".dormant");
  for (Instruction &I : instructions(F))
    if (isa<CallBase>(I) && !isa<IntrinsicInst>(I))
      Made.Calls.push_back({cast<CallBase>(&I), cast<CallBase>(Copies[&I])});
  for (BasicBlock &B : *Made.Apart)
    Made.Dormant.insert(&B);
  Made.Front = another(F, *F.getParent());
  Made.Ask = another(F, *F.getParent());
  makeLocal(*Made.Ask, F.getName() + ".ask");

  BasicBlock *Entry = &F.getEntryBlock();
  BasicBlock::iterator First = Entry->begin();
  while (isa<AllocaInst>(First) && cast<AllocaInst>(First)->isStaticAlloca())
    ++First;
  Made.Body = SplitBlock(Entry, &*First);
  BasicBlock *Sleep = BasicBlock::Create(F.getContext(), "", &F);
  new UnreachableInst(F.getContext(), Sleep);
  Made.Dormant.insert(Sleep);
  Made.Switches.insert(Entry);
  ReplaceInstWithInst(Entry->getTerminator(),
                      BranchInst::Create(Sleep, Made.Body, ConstantInt::getFalse(F.getContext())));
  ++NumApart;
  return Made;
}

/// Makes \p Front take the place of \p F for its callers.
static void takePlace(Function &Front, Function &F, Function &Ask) {
  Front.takeName(&F);
  SmallVector<std::pair<unsigned, MDNode *>, 4> Attached;
  F.getAllMetadata(Attached);
  for (auto [Kind, Node] : Attached)
    if (Kind != LLVMContext::MD_dbg)
      Front.addMetadata(Kind, *Node);
  F.replaceAllUsesWith(&Front);
  for (Function *Chooser : {&Front, &Ask})
    for (Instruction &I : instructions(*Chooser))
      if (auto *Jump = dyn_cast<CallInst>(&I); Jump && Jump->getCalledFunction() == &Front)
        Jump->setCalledFunction(&F);
  makeLocal(F, Front.getName() + ".recording");
}

/// Returns whether calls of \p F reach this definition: neither another module's nor another image's is taken
/// for it.
static bool isOurs(const Function &F) { return F.isDSOLocal() && !F.isInterposable(); }

DormantCalls::DormantCalls(Module &M, LibraryOf Library) {
  CallGraph Graph(M);
  unsigned Number = 0;
  for (auto Found = scc_begin(&Graph); !Found.isAtEnd(); ++Found) {
    ++Number;
    SmallVector<Function *, 4> Members;
    for (const CallGraphNode *Node : *Found)
      if (Function *F = Node->getFunction(); F && !F->isDeclaration()) {
        Members.push_back(F);
        Circle[F] = Number;
      }
    if (any_of(Members, [&](Function *F) {
          return any_of(instructions(F), [&](const Instruction &I) { return maySwitch(I, Library(*F)); });
        }))
      Unknown.insert(Members.begin(), Members.end());
  }
}

/// Returns whether recording may be on behind \p I because \p I switched it on. Callees are
/// examined first.
bool DormantCalls::maySwitch(const Instruction &I, const TargetLibraryInfo &TLI) const {
  const auto *Call = dyn_cast<CallBase>(&I);
  if (!Call || !mayRecord(*Call))
    return false;
  const Function *Callee = Call->getCalledFunction();
  LibFunc Known;
  if (Callee && Callee->isDeclaration() && TLI.getLibFunc(*Callee, Known))
    return false;
  return !Callee || !isOurs(*Callee) || !Circle.contains(Callee) || Unknown.contains(Callee);
}

void DormantCalls::note(Function &F, const Versions &Sides, const TargetLibraryInfo &TLI) {
  if (Sides.Apart)
    Apart[&F] = Sides;
  SmallVector<BasicBlock *, 32> Blocks;
  SmallPtrSet<const BasicBlock *, 32> Asking;   // the next block is executed only if recording is off
  SmallPtrSet<const BasicBlock *, 32> Switched; // at the end, recording may have been switched on
  for (BasicBlock *B : ReversePostOrderTraversal<Function *>(Sides.Apart ? Sides.Apart : &F)) {
    if (!Sides.Dormant.contains(B))
      continue;
    Blocks.push_back(B);
    if (any_of(successors(B), [&](const BasicBlock *To) { return Sides.Wakes.contains(To); }))
      Asking.insert(B);
    else if (any_of(*B, [&](const Instruction &I) { return maySwitch(I, TLI); }))
      Switched.insert(B);
  }
  const auto switchedAt = [&](const BasicBlock *B) {
    return any_of(predecessors(B), [&](const BasicBlock *From) { return Switched.contains(From); });
  };
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (const BasicBlock *B : Blocks)
      if (!Asking.contains(B) && switchedAt(B))
        Changed |= Switched.insert(B).second;
  }
  for (BasicBlock *B : Blocks) {
    bool Now = switchedAt(B);
    for (Instruction &I : *B) {
      auto *Call = dyn_cast<CallBase>(&I);
      const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
      // Of what another module has too the linker may drop this one, with what is local to it.
      if (!Now && Callee && isOurs(*Callee) && Circle.lookup(Callee) != Circle.lookup(&F) &&
          (!Callee->hasComdat() || Callee->getComdat() == F.getComdat()))
        Calls.push_back(Call);
      Now |= maySwitch(I, TLI);
    }
  }
}

void DormantCalls::redirect() {
  for (CallBase *Call : Calls)
    if (auto *Found = Apart.find(Call->getCalledFunction()); Found != Apart.end()) {
      Call->setCalledFunction(Found->second.Apart);
      ++NumUnasked;
    }
  for (auto &[F, Sides] : Apart)
    takePlace(*Sides.Front, *F, *Sides.Ask);
}

} // namespace memlode
