//===- RustAllocator.cpp --------------------------------------------------===//

#include "find/RustAllocator.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace memlode {

StringRef plainRustName(StringRef Name) {
  constexpr StringLiteral Crate = "_7___rustc";
  const size_t At = Name.find(Crate);
  if (!Name.starts_with("_R") || At == StringRef::npos)
    return Name;
  // The length counts an underscore that separates it from a name starting with one.
  return Name.substr(At + Crate.size()).drop_while([](char C) { return C >= '0' && C <= '9'; }).drop_front(1);
}

namespace {

constexpr StringLiteral AllocatorPrefix = "__rust_";
constexpr StringLiteral ProgramsPrefix = "__rg_";

bool isAllocatorCall(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Case("__rust_alloc", true)
      .Case("__rust_alloc_zeroed", true)
      .Case("__rust_realloc", true)
      .Case("__rust_dealloc", true)
      .Default(false);
}

/// Returns whether \p F only calls recorded functions. Otherwise, in Rust 1.95, it is the program's
/// own allocator.
bool passesOn(const Function &F) {
  return any_of(instructions(F), [](const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    const StringRef Name = Callee ? plainRustName(Callee->getName()) : StringRef();
    return Name.starts_with("__rdl_") || Name.starts_with(ProgramsPrefix);
  });
}

/// Moves the body of \p F into a function that takes the place of `__rg_alloc` and its kin in
/// earlier Rust, and makes \p F call it.
void passOn(Function &F, StringRef Name) {
  const std::string Own = (ProgramsPrefix + Name.drop_front(AllocatorPrefix.size())).str();
  Function *Body = Function::Create(F.getFunctionType(), GlobalValue::ExternalLinkage, F.getAddressSpace(),
                                    Own, F.getParent());
  Body->copyAttributesFrom(&F);
  Body->setVisibility(GlobalValue::HiddenVisibility);
  Body->copyMetadata(&F, 0);
  F.clearMetadata();
  F.setPersonalityFn(nullptr);
  Body->splice(Body->begin(), &F);
  SmallVector<Value *, 4> Arguments;
  for (auto [Old, New] : zip_equal(F.args(), Body->args())) {
    New.takeName(&Old);
    Old.replaceAllUsesWith(&New);
    Arguments.push_back(&Old);
  }
  IRBuilder<> Builder(BasicBlock::Create(F.getContext(), "", &F));
  CallInst *Call = Builder.CreateCall(Body, Arguments);
  Call->setCallingConv(Body->getCallingConv());
  if (F.getReturnType()->isVoidTy())
    Builder.CreateRetVoid();
  else
    Builder.CreateRet(Call);
}

} // namespace

bool openRustAllocator(Module &M) {
  bool Changed = false;
  for (Function &F : make_early_inc_range(M)) {
    if (F.isDeclaration())
      continue;
    const StringRef Name = plainRustName(F.getName());
    const bool PassesOn = isAllocatorCall(Name);
    if (!PassesOn && !Name.starts_with(ProgramsPrefix))
      continue;
    if (PassesOn && !F.hasAvailableExternallyLinkage() && !passesOn(F))
      passOn(F, Name);
    F.removeFnAttr(PassesOn ? Attribute::NoInline : Attribute::AlwaysInline);
    F.addFnAttr(PassesOn ? Attribute::AlwaysInline : Attribute::NoInline);
    Changed = true;
  }
  return Changed;
}

} // namespace memlode
