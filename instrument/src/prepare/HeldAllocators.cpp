//===- HeldAllocators.cpp -------------------------------------------------===//

#include "prepare/HeldAllocators.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"

using namespace llvm;

namespace memlode {

namespace {

/// Allocators of one signature: the type of the result, and behind it those of the arguments. `p` is a
/// pointer, `l` a size, `i` an int, `v` nothing.
struct Signature {
  StringLiteral Types;
  StringLiteral Names; ///< separated by spaces, most frequent first
};

const Signature Signatures[] = {
    {"pl", "malloc _Znwm _Znam"},
    {"pll", "calloc aligned_alloc memalign _ZnwmSt11align_val_t _ZnamSt11align_val_t"},
    {"plp", "_ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t"},
    {"ppl", "realloc strndup"},
    {"pp", "strdup"},
    {"ppll", "reallocarray"},
    {"ipll", "posix_memalign"},
    {"ppliiil", "mmap"},
    {"ipl", "munmap"},
    {"vp", "free _ZdlPv _ZdaPv"},
    {"vpl", "_ZdlPvm _ZdaPvm _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t"},
    {"vpll", "_ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t"},
};

char letterOf(const Type *T) {
  if (T->isVoidTy())
    return 'v';
  if (T->isPointerTy() && T->getPointerAddressSpace() == 0)
    return 'p';
  return T->isIntegerTy(64) ? 'l' : T->isIntegerTy(32) ? 'i' : '?';
}

std::string typesOf(const FunctionType &T) {
  std::string Types(1, letterOf(T.getReturnType()));
  for (const Type *Argument : T.params())
    Types += letterOf(Argument);
  return Types;
}

/// Returns whether \p Call takes its callee from the table of virtual functions of its first argument. No
/// allocator is there, and destructors are called like `free`.
bool isVirtual(const CallBase &Call) {
  const auto *Entry = dyn_cast<LoadInst>(Call.getCalledOperand());
  if (!Entry || !Call.arg_size())
    return false;
  const auto *Object = dyn_cast<LoadInst>(Entry->getPointerOperand()->stripInBoundsConstantOffsets());
  return Object && Object->getPointerOperand() == Call.getArgOperand(0);
}

bool isByPointer(const CallBase &Call) {
  return Call.isIndirectCall() && !isa<CallBrInst>(Call) && !Call.isMustTailCall() &&
         !Call.hasOperandBundles() && !Call.getFunctionType()->isVarArg() && !isVirtual(Call);
}

class Opener {
public:
  Opener(Module &M, ArrayRef<StringRef> Own)
      : M(M), Own(Own),
        HasOperators(any_of(M, [](const Function &F) { return F.getName().starts_with("_Z"); })) {}

  /// Opens the calls of \p F; true if it has new blocks.
  bool open(Function &F) {
    const size_t Blocks = F.size();
    SmallVector<CallBase *, 8> Calls;
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallBase>(&I); Call && isByPointer(*Call))
        Calls.push_back(Call);
    for (CallBase *Call : Calls)
      open(*Call);
    return F.size() != Blocks;
  }

private:
  void open(CallBase &Call) {
    const std::string Types = typesOf(*Call.getFunctionType());
    for (const StringRef Name : Own)
      if (Function *Held = M.getFunction(Name))
        ask(Call, *Held);
    const auto *Known = find_if(Signatures, [&](const Signature &S) { return S.Types == Types; });
    if (Known == std::end(Signatures))
      return;
    SmallVector<StringRef, 4> Names;
    Known->Names.split(Names, ' ');
    for (const StringRef Name : Names)
      if (HasOperators || !Name.starts_with("_Z"))
        if (Function *Held = declared(Name, *Call.getFunctionType()))
          ask(Call, *Held);
  }

  /// A weak reference: a program that has no such function is linked as before.
  Function *declared(StringRef Name, FunctionType &T) {
    if (GlobalValue *Found = M.getNamedValue(Name)) {
      auto *F = dyn_cast<Function>(Found);
      return F && !F->hasLocalLinkage() ? F : nullptr;
    }
    return Function::Create(&T, GlobalValue::ExternalWeakLinkage, Name, M);
  }

  static void ask(CallBase &Call, Function &Held) {
    if (Held.getFunctionType() == Call.getFunctionType() && isLegalToPromote(Call, &Held))
      promoteCallWithIfThenElse(Call, &Held);
  }

  Module &M;
  ArrayRef<StringRef> Own;
  bool HasOperators;
};

} // namespace

void openHeldAllocators(Module &M, ArrayRef<Function *> Functions, ArrayRef<StringRef> Own,
                        FunctionAnalysisManager &FAM) {
  // A linker's plug-in sees the module for the first time.
  markResourceCalls(M);
  Opener Calls(M, Own);
  for (Function *F : Functions)
    if (Calls.open(*F))
      FAM.invalidate(*F, PreservedAnalyses::none());
}

/// The function whose source \p I stands in. A linker's plug-in sees a module whose functions were
/// inlined already.
static StringRef writtenIn(const Instruction &I) {
  if (const DILocation *Line = I.getDebugLoc())
    if (const DISubprogram *Within = Line->getScope()->getSubprogram(); !Within->getLinkageName().empty())
      return Within->getLinkageName();
  return I.getFunction()->getName();
}

bool markResourceCalls(Module &M) {
  bool Changed = false;
  for (Function &F : M)
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || !Call->isIndirectCall())
        continue;
      // _ZNSt3pmr15memory_resource8allocateEmm; in libc++ with a version's namespace and tags of
      // its ABI.
      StringRef Name = writtenIn(*Call);
      if (!Name.consume_front("_ZNSt") || !Name.contains("3pmr15memory_resource"))
        continue;
      Name = Name.split("3pmr15memory_resource").second;
      const bool Makes = Name.starts_with("8allocate");
      if (!Makes && !Name.starts_with("10deallocate"))
        continue;
      Call->addFnAttr(Attribute::get(M.getContext(), ResourceCall,
                                     Makes ? "memory_resource::allocate" : "memory_resource::deallocate"));
      Changed = true;
    }
  return Changed;
}

} // namespace memlode
