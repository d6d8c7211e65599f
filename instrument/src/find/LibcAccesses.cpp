//===- LibcAccesses.cpp ---------------------------------------------------===//

#include "find/LibcAccesses.h"

#include "memlode_format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace memlode {

namespace {

using Extent = LibraryAccess::Extent;
constexpr unsigned Load = MEMLODE_KIND_LOAD;
constexpr unsigned Store = MEMLODE_KIND_STORE;
constexpr int Result = LibraryAccess::Result;
constexpr int None = LibraryAccess::None;
constexpr bool Appended = true;
constexpr bool Approximate = true;

struct Row {
  const char *Names; ///< separated by spaces
  std::vector<LibraryAccess> Accesses;
};

const Row Rows[] = {
    {"strlen", {{Load, 0, Extent::Counted}}},
    {"strnlen", {{Load, 0, Extent::Counted, 1}}},
    {"memcmp bcmp", {{Load, 0, Extent::Bytes, 2}, {Load, 1, Extent::Bytes, 2}}},
    {"strcmp", {{Load, 0, Extent::Compared}, {Load, 1, Extent::Compared}}},
    {"strncmp", {{Load, 0, Extent::Compared, 2}, {Load, 1, Extent::Compared, 2}}},
    {"strcasecmp",
     {{Load, 0, Extent::Folded, None, None, false, Approximate},
      {Load, 1, Extent::Folded, None, None, false, Approximate}}},
    {"strncasecmp",
     {{Load, 0, Extent::Folded, 2, None, false, Approximate},
      {Load, 1, Extent::Folded, 2, None, false, Approximate}}},

    {"memchr", {{Load, 0, Extent::Within, 2}}},
    {"memrchr", {{Load, 0, Extent::Back, 2}}},
    {"rawmemchr strchr strchrnul index", {{Load, 0, Extent::Found}}},
    {"strrchr rindex", {{Load, 0, Extent::String, 0}}},
    {"strspn strcspn", {{Load, 0, Extent::Counted}, {Load, 1, Extent::String, 1}}},
    {"strpbrk", {{Load, 0, Extent::Found}, {Load, 1, Extent::String, 1}}},
    {"strstr strcasestr",
     {{Load, 0, Extent::Found, None, 1, false, Approximate}, {Load, 1, Extent::String, 1}}},
    {"memmem", {{Load, 0, Extent::Within, 1, 3, false, Approximate}, {Load, 2, Extent::Bytes, 3}}},
    {"strtok strtok_r __strtok_r strsep",
     {{Load, Result, Extent::String, Result, None, false, Approximate}, {Load, 1, Extent::String, 1}}},

    {"strcpy stpcpy __strcpy_chk __stpcpy_chk",
     {{Load, 1, Extent::String, 1}, {Store, 0, Extent::String, 1}}},
    {"strncpy stpncpy __strncpy_chk __stpncpy_chk",
     {{Load, 1, Extent::String, 1, 2}, {Store, 0, Extent::Bytes, 2}}},
    {"strcat __strcat_chk",
     {{Load, 0, Extent::String, 0},
      {Load, 1, Extent::String, 1},
      {Store, 0, Extent::String, 1, None, Appended}}},
    {"strncat __strncat_chk",
     {{Load, 0, Extent::String, 0},
      {Load, 1, Extent::String, 1, 2},
      {Store, 0, Extent::Filled, 1, 2, Appended}}},
    {"memccpy", {{Load, 1, Extent::Stopped, 3}, {Store, 0, Extent::Stopped, 3}}},
    {"strdup __strdup", {{Load, 0, Extent::String, 0}, {Store, Result, Extent::String, Result}}},
    {"strndup __strndup", {{Load, 0, Extent::String, 0, 1}, {Store, Result, Extent::String, Result}}},

    // Their comparisons are the program's, and record themselves.
    {"qsort qsort_r",
     {{Load, 0, Extent::Product, 1, 2, false, Approximate},
      {Store, 0, Extent::Product, 1, 2, false, Approximate}}},
    {"bsearch", {{Load, Result, Extent::Element, 3, None, false, Approximate}}},
};

const StringMap<const Row *> &rowsByName() {
  static const StringMap<const Row *> Found = [] {
    StringMap<const Row *> Made;
    for (const Row &R : Rows) {
      SmallVector<StringRef, 4> Names;
      StringRef(R.Names).split(Names, ' ');
      for (StringRef Name : Names)
        Made[Name] = &R;
    }
    return Made;
  }();
  return Found;
}

bool isPointer(const CallBase &Call, int Position) {
  const Type *T = Position == Result                     ? Call.getType()
                  : unsigned(Position) < Call.arg_size() ? Call.getArgOperand(Position)->getType()
                                                         : nullptr;
  return T && T->isPointerTy() && T->getPointerAddressSpace() == 0;
}

bool isNumber(const CallBase &Call, int Position) {
  if (Position == None)
    return true;
  return Position >= 0 && unsigned(Position) < Call.arg_size() &&
         Call.getArgOperand(Position)->getType()->isIntegerTy(64);
}

/// Returns whether \p Call has the arguments that \p A speaks of.
bool fits(const CallBase &Call, const LibraryAccess &A) {
  if (!isPointer(Call, A.Pointer))
    return false;
  switch (A.Is) {
  case Extent::String:
  case Extent::Filled:
    return isPointer(Call, A.A) && isNumber(Call, A.B);
  case Extent::Compared:
  case Extent::Folded:
    return isPointer(Call, 0) && isPointer(Call, 1) && isNumber(Call, A.A);
  case Extent::Counted:
    return Call.getType()->isIntegerTy(64) && isNumber(Call, A.A);
  case Extent::Found:
    return isPointer(Call, Result) && (A.B == None || isPointer(Call, A.B));
  case Extent::Within:
  case Extent::Back:
  case Extent::Stopped:
  case Extent::Element:
    return isPointer(Call, Result) && isNumber(Call, A.A) && isNumber(Call, A.B);
  case Extent::Bytes:
  case Extent::Product:
    return isNumber(Call, A.A) && isNumber(Call, A.B);
  }
  return false;
}

constexpr StringLiteral OwnPrefix = "__memlode_own_";

/// Calls a function of the recorder that reads memory, and records nothing.
Value *ask(IRBuilder<> &B, StringRef Name, ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 5> Types;
  for (const Value *V : Arguments)
    Types.push_back(V->getType());
  Module &M = *B.GetInsertBlock()->getModule();
  FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(B.getInt64Ty(), Types, false));
  auto *Asked = cast<Function>(Callee.getCallee());
  Asked->addFnAttr(Attribute::NoUnwind);
  Asked->addFnAttr(Attribute::WillReturn);
  Asked->setOnlyReadsMemory();
  return B.CreateCall(Callee, Arguments);
}

/// Computes the ranges of one call.
class Computer {
public:
  explicit Computer(CallBase &Call)
      : Call(Call), Front(&Call), Behind(behind(Call)), Own(ownDefinition(Call)) {
    Behind.SetCurrentDebugLocation(Call.getDebugLoc());
  }

  LibraryRange range(const LibraryAccess &A) {
    IRBuilder<> &B = A.isKnownBehind() ? Behind : Front;
    Value *Pointer = argument(A.Pointer);
    if (A.Is == Extent::Back)
      Pointer = B.CreateSelect(B.CreateIsNull(&Call), Pointer, &Call);
    if (A.Appended) // over the end of what is there already
      Pointer = B.CreateSelect(
          isOwn(B), Pointer, B.CreatePtrAdd(Pointer, B.CreateSub(string(B, Pointer, none()), B.getInt64(1))));
    return {Pointer, unlessOwn(B, bytes(B, A, Pointer)), A.isKnownBehind() ? &*B.GetInsertPoint() : nullptr};
  }

private:
  static Instruction *behind(CallBase &Call) {
    if (auto *Invoke = dyn_cast<InvokeInst>(&Call))
      return &*Invoke->getNormalDest()->getFirstInsertionPt();
    return Call.getNextNode();
  }

  Value *argument(int Position) { return Position == Result ? &Call : Call.getArgOperand(Position); }
  Value *none() { return ConstantInt::getAllOnesValue(Type::getInt64Ty(Call.getContext())); }
  Value *number(int Position) { return Position == None ? none() : argument(Position); }

  Value *isOwn(IRBuilder<> &B) { return B.CreateIsNotNull(Own); }
  Value *unlessOwn(IRBuilder<> &B, Value *Bytes) { return B.CreateSelect(isOwn(B), B.getInt64(0), Bytes); }

  Value *string(IRBuilder<> &B, Value *Start, Value *Most) {
    return ask(B, "__memlode_extent_string", {Own, Start, Most});
  }

  Value *distance(IRBuilder<> &B, Value *From, Value *To) {
    return B.CreateSub(B.CreatePtrToInt(To, B.getInt64Ty()), B.CreatePtrToInt(From, B.getInt64Ty()));
  }

  Value *bytes(IRBuilder<> &B, const LibraryAccess &A, Value *Pointer) {
    const auto ifNothing = [&](Value *Nothing, Value *Bytes) {
      return B.CreateSelect(B.CreateIsNull(&Call), Nothing, Bytes);
    };
    // What is found is one character, or as long as what was looked for.
    const auto through = [&](Value *Sought) { return B.CreateAdd(distance(B, Pointer, &Call), Sought); };
    switch (A.Is) {
    case Extent::Bytes:
      return argument(A.A);
    case Extent::Product:
      return B.CreateMul(argument(A.A), argument(A.B));
    case Extent::String:
      return string(B, argument(A.A), number(A.B));
    case Extent::Filled:
      return ask(B, "__memlode_extent_append", {Own, argument(A.A), number(A.B)});
    case Extent::Compared:
    case Extent::Folded:
      return ask(B, "__memlode_extent_compare",
                 {Own, argument(0), argument(1), number(A.A), B.getInt32(A.Is == Extent::Folded)});
    case Extent::Counted:
      return B.CreateBinaryIntrinsic(Intrinsic::umin, B.CreateAdd(&Call, B.getInt64(1)), number(A.A));
    case Extent::Found: {
      // Nobody looks for the end of a string that was not searched through.
      Value *Searched = B.CreateSelect(B.CreateIsNull(&Call), Pointer, Constant::getNullValue(B.getPtrTy()));
      Value *Sought =
          A.B == None ? B.getInt64(1) : B.CreateSub(string(B, argument(A.B), none()), B.getInt64(1));
      return ifNothing(string(B, Searched, none()), through(Sought));
    }
    case Extent::Within:
      return ifNothing(number(A.A), through(A.B == None ? B.getInt64(1) : number(A.B)));
    case Extent::Back:
      return B.CreateSub(number(A.A), ifNothing(B.getInt64(0), distance(B, argument(0), &Call)));
    case Extent::Stopped:
      return ifNothing(number(A.A), distance(B, argument(0), &Call));
    case Extent::Element:
      return ifNothing(B.getInt64(0), number(A.A));
    }
    llvm_unreachable("every extent has its bytes");
  }

  CallBase &Call;
  IRBuilder<> Front, Behind;
  Constant *Own;
};

} // namespace

ArrayRef<LibraryAccess> libraryAccesses(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || (!Callee->isDeclaration() && !Callee->hasAvailableExternallyLinkage()))
    return {};
  const Row *Found = rowsByName().lookup(Callee->getName());
  if (!Found || !all_of(Found->Accesses, [&](const LibraryAccess &A) { return fits(Call, A); }))
    return {};
  return Found->Accesses;
}

bool isKnownBehind(const CallBase &Call) {
  return any_of(libraryAccesses(Call), [](const LibraryAccess &A) { return A.isKnownBehind(); });
}

bool LibraryRanges::compute(Function &F, const DenseSet<const BasicBlock *> &Dormant) {
  SmallVector<CallBase *, 8> Calls;
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallBase>(&I); Call && !Dormant.contains(I.getParent()))
      if (!libraryAccesses(*Call).empty())
        Calls.push_back(Call);
  for (CallBase *Call : Calls) {
    Computer Ranges(*Call);
    unsigned Number = 0;
    for (const LibraryAccess &A : libraryAccesses(*Call)) {
      if (!A.isKnownBehind() || !Call->isMustTailCall())
        Known[{Call, Number}] = Ranges.range(A);
      ++Number;
    }
  }
  return !Calls.empty();
}

Constant *ownDefinition(const CallBase &Call) {
  Module &M = *const_cast<Module *>(Call.getModule());
  const std::string Name = (OwnPrefix + Call.getCalledFunction()->getName()).str();
  if (GlobalValue *Known = M.getNamedValue(Name))
    return Known;
  return new GlobalVariable(M, Type::getInt8Ty(M.getContext()), /*isConstant=*/true,
                            GlobalValue::ExternalWeakLinkage, nullptr, Name);
}

Value *stringBytes(IRBuilder<> &B, Value *Own, Value *Start) {
  return ask(B, "__memlode_extent_string", {Own, Start, Constant::getAllOnesValue(B.getInt64Ty())});
}

void markOwnDefinitions(Module &M) {
  for (Function &F : M) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || F.hasLocalLinkage() ||
        !rowsByName().contains(F.getName()))
      continue;
    const std::string Name = (OwnPrefix + F.getName()).str();
    GlobalValue *Referred = M.getNamedValue(Name);
    if (Referred && !Referred->isDeclaration())
      continue;
    auto *Own = GlobalAlias::create(F.getValueType(), 0, F.getLinkage(), Name, &F, &M);
    Own->setVisibility(F.getVisibility());
    Own->setDSOLocal(F.isDSOLocal());
    if (!Referred)
      continue;
    Own->takeName(Referred);
    Referred->replaceAllUsesWith(Own);
    Referred->eraseFromParent();
  }
}

} // namespace memlode
