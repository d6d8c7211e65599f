//===- StringCopies.cpp ---------------------------------------------------===//
#include "StringCopies.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace memlode {

namespace {

/// strdup:  n = strlen(s);     p = malloc(n + 1); if (p) memcpy(p, s, n + 1)
/// strndup: n = strnlen(s, k); p = malloc(n + 1); if (p) memcpy(p, s, n), p[n] = 0
///
/// The lengths are 0 where the allocation failed, so that no branch is needed.
void open(CallInst &Call, bool Bounded) {
  IRBuilder<> B(&Call);
  Module &M = *Call.getModule();
  Type *Size = M.getDataLayout().getIntPtrType(Call.getContext());
  Value *From = Call.getArgOperand(0);
  Value *Length = Bounded ? B.CreateCall(M.getOrInsertFunction("strnlen", Size, From->getType(), Size),
                                         {From, B.CreateZExtOrTrunc(Call.getArgOperand(1), Size)})
                          : B.CreateCall(M.getOrInsertFunction("strlen", Size, From->getType()), From);
  Value *Whole = B.CreateAdd(Length, ConstantInt::get(Size, 1));
  CallInst *Copy = B.CreateCall(M.getOrInsertFunction("malloc", Call.getType(), Size), Whole);
  Copy->addRetAttr(Attribute::NoAlias);
  Value *None = ConstantInt::get(Size, 0);
  Value *Made = B.CreateIsNotNull(Copy);
  B.CreateMemCpy(Copy, Align(1), From, Align(1), B.CreateSelect(Made, Bounded ? Length : Whole, None));
  if (Bounded)
    B.CreateMemSet(B.CreatePtrAdd(Copy, Length), B.getInt8(0),
                   B.CreateSelect(Made, ConstantInt::get(Size, 1), None), Align(1));
  Copy->takeName(&Call);
  Call.replaceAllUsesWith(Copy);
  Call.eraseFromParent();
}

} // namespace

bool openStringCopies(Function &F, const TargetLibraryInfo &TLI) {
  SmallVector<std::pair<CallInst *, bool>, 4> Found;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallInst>(&I);
    LibFunc Is;
    if (!Call || Call->isMustTailCall() || Call->isNoBuiltin() || !TLI.getLibFunc(*Call, Is) || !TLI.has(Is))
      continue;
    if (Is == LibFunc_strdup || Is == LibFunc_strndup)
      Found.push_back({Call, Is == LibFunc_strndup});
  }
  for (auto [Call, Bounded] : Found)
    open(*Call, Bounded);
  return !Found.empty();
}

} // namespace memlode
