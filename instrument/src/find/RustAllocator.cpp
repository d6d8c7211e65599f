//===- RustAllocator.cpp --------------------------------------------------===//

#include "find/RustAllocator.h"

#include "llvm/ADT/StringSwitch.h"
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

bool openRustAllocator(Module &M) {
  bool Changed = false;
  for (Function &F : M) {
    if (F.isDeclaration())
      continue;
    const StringRef Name = plainRustName(F.getName());
    const bool PassesOn = StringSwitch<bool>(Name)
                              .Case("__rust_alloc", true)
                              .Case("__rust_alloc_zeroed", true)
                              .Case("__rust_realloc", true)
                              .Case("__rust_dealloc", true)
                              .Default(false);
    if (!PassesOn && !Name.starts_with("__rg_"))
      continue;
    F.removeFnAttr(PassesOn ? Attribute::NoInline : Attribute::AlwaysInline);
    F.addFnAttr(PassesOn ? Attribute::AlwaysInline : Attribute::NoInline);
    Changed = true;
  }
  return Changed;
}

} // namespace memlode
