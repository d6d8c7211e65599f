//===- LibcAccesses.cpp ---------------------------------------------------===//

#include "find/LibcAccesses.h"
#include "find/ByName.h"
#include "find/LibcBlocks.h"

#include "memlode_format.h"

#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace memlode {

namespace {

using Extent = LibraryAccess::Extent;
constexpr unsigned Load = MEMLODE_KIND_LOAD;
constexpr unsigned Store = MEMLODE_KIND_STORE;
constexpr unsigned Update = MEMLODE_KIND_UPDATE;
constexpr int Result = LibraryAccess::Result;
constexpr int None = LibraryAccess::None;
constexpr bool Appended = true;
constexpr bool Approximate = true;
/// The bytes of a character of wchar_t, where glibc is.
constexpr unsigned WideBytes = 4;

struct Row {
  std::string Names; ///< separated by spaces
  std::vector<LibraryAccess> Accesses;
};

/// \p A, of characters that are wchar_t.
LibraryAccess wide(LibraryAccess A) {
  A.Unit = WideBytes;
  return A;
}

/// \p A as an atomic operation whose memory orders are the arguments \p Order and \p OrderElse.
LibraryAccess atomic(LibraryAccess A, int Order, int OrderElse = None) {
  A.Order = Order;
  A.OrderElse = OrderElse;
  return A;
}

const Row Rows[] = {
#include "find/LibcRecorded.def"
};

/// The atomic operations on objects of \p Bytes bytes that libatomic and compiler-rt have.
std::vector<Row> sizedAtomics(unsigned Bytes) {
  const std::string End = "_" + std::to_string(Bytes);
  const int N = static_cast<int>(Bytes);
  std::string Updates;
  for (const char *Does : {"add", "sub", "and", "or", "xor", "nand"})
    for (const std::string &Name : {"fetch_" + std::string(Does), std::string(Does) + "_fetch"})
      Updates.append(" __atomic_").append(Name).append(End);
  return {{"__atomic_load" + End, {atomic({Load, 0, Extent::Fixed, N}, 1)}},
          {"__atomic_store" + End, {atomic({Store, 0, Extent::Fixed, N}, 2)}},
          {"__atomic_exchange" + End + Updates, {atomic({Update, 0, Extent::Fixed, N}, 2)}},
          {"__atomic_compare_exchange" + End,
           {atomic({Update, 0, Extent::Fixed, N}, 3, 4),
            {Load, 1, Extent::Fixed, N},
            {Store, 1, Extent::FixedUnlessDone, N}}}};
}

const StringMap<const Row *> &rowsByName() {
  static const std::vector<Row> All = [] {
    std::vector<Row> Made(std::begin(Rows), std::end(Rows));
    for (const unsigned Bytes : {1, 2, 4, 8, 16})
      for (Row &R : sizedAtomics(Bytes))
        Made.push_back(std::move(R));
    return Made;
  }();
  static const StringMap<const Row *> Found = byName(All);
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
  case Extent::Pairs:
  case Extent::Product:
    return isNumber(Call, A.A) && isNumber(Call, A.B);
  case Extent::BytesUnlessDone:
    return Call.getType()->isIntegerTy() && isNumber(Call, A.A);
  case Extent::FixedUnlessDone:
    return Call.getType()->isIntegerTy();
  case Extent::Fixed:
    return true;
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
          isOwn(B), Pointer,
          B.CreatePtrAdd(Pointer, B.CreateSub(string(B, A, Pointer, none()), B.getInt64(A.Unit))));
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

  /// Calls the recorder's function for characters of the size of \p A's.
  Value *askFor(IRBuilder<> &B, const LibraryAccess &A, StringRef Name, ArrayRef<Value *> Arguments) {
    return ask(B, (A.Unit == 1 ? Name : (Name + "_wide")).str(), Arguments);
  }

  Value *string(IRBuilder<> &B, const LibraryAccess &A, Value *Start, Value *Most) {
    return askFor(B, A, "__memlode_extent_string", {Own, Start, Most});
  }

  /// The number of characters in bytes; none() stays as it is.
  Value *bytesOf(IRBuilder<> &B, const LibraryAccess &A, int Position) {
    Value *Count = number(Position);
    return A.Unit == 1 || Position == None ? Count : B.CreateMul(Count, B.getInt64(A.Unit));
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
    Value *Unit = B.getInt64(A.Unit);
    switch (A.Is) {
    case Extent::Bytes:
      return bytesOf(B, A, A.A);
    case Extent::Pairs:
      return B.CreateAnd(B.CreateBinaryIntrinsic(Intrinsic::smax, argument(A.A), B.getInt64(0)),
                         B.getInt64(~UINT64_C(1)));
    case Extent::Product:
      return B.CreateMul(argument(A.A), argument(A.B));
    case Extent::Fixed:
      return B.CreateSelect(B.CreateIsNull(Pointer), B.getInt64(0), B.getInt64(A.A));
    case Extent::String:
      return string(B, A, argument(A.A), number(A.B));
    case Extent::Filled:
      return askFor(B, A, "__memlode_extent_append", {Own, argument(A.A), number(A.B)});
    case Extent::Compared:
      if (A.Unit != 1)
        return ask(B, "__memlode_extent_compare_wide", {Own, argument(0), argument(1), number(A.A)});
      [[fallthrough]];
    case Extent::Folded:
      return ask(B, "__memlode_extent_compare",
                 {Own, argument(0), argument(1), number(A.A), B.getInt32(A.Is == Extent::Folded)});
    case Extent::Counted:
      return B.CreateBinaryIntrinsic(Intrinsic::umin, B.CreateMul(B.CreateAdd(&Call, B.getInt64(1)), Unit),
                                     bytesOf(B, A, A.A));
    case Extent::Found: {
      // Nobody looks for the end of a string that was not searched through.
      Value *Searched = B.CreateSelect(B.CreateIsNull(&Call), Pointer, Constant::getNullValue(B.getPtrTy()));
      Value *Sought = A.B == None ? Unit : B.CreateSub(string(B, A, argument(A.B), none()), Unit);
      return ifNothing(string(B, A, Searched, none()), through(Sought));
    }
    case Extent::Within:
      return ifNothing(bytesOf(B, A, A.A), through(A.B == None ? Unit : number(A.B)));
    case Extent::Back:
      return B.CreateSub(number(A.A), ifNothing(B.getInt64(0), distance(B, argument(0), &Call)));
    case Extent::Stopped:
      return ifNothing(number(A.A), distance(B, argument(0), &Call));
    case Extent::Element:
      return ifNothing(B.getInt64(0), number(A.A));
    case Extent::BytesUnlessDone:
      return ifNothing(argument(A.A), B.getInt64(0));
    case Extent::FixedUnlessDone:
      return ifNothing(B.getInt64(A.A), B.getInt64(0));
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
  const Row *Found = rowsByName().lookup(GlobalValue::dropLLVMManglingEscape(Callee->getName()));
  if (!Found || !all_of(Found->Accesses, [&](const LibraryAccess &A) { return fits(Call, A); }))
    return {};
  return Found->Accesses;
}

/// The memory order that an argument gives, as C11 numbers them.
static AtomicOrdering orderAt(const CallBase &Call, int Position) {
  if (Position == None)
    return AtomicOrdering::Monotonic;
  const auto *Known =
      unsigned(Position) < Call.arg_size() ? dyn_cast<ConstantInt>(Call.getArgOperand(Position)) : nullptr;
  switch (Known ? static_cast<AtomicOrderingCABI>(Known->getZExtValue()) : AtomicOrderingCABI::seq_cst) {
  case AtomicOrderingCABI::relaxed:
    return AtomicOrdering::Monotonic;
  case AtomicOrderingCABI::consume:
  case AtomicOrderingCABI::acquire:
    return AtomicOrdering::Acquire;
  case AtomicOrderingCABI::release:
    return AtomicOrdering::Release;
  case AtomicOrderingCABI::acq_rel:
    return AtomicOrdering::AcquireRelease;
  case AtomicOrderingCABI::seq_cst:
    break;
  }
  return AtomicOrdering::SequentiallyConsistent;
}

std::optional<LibraryAtomic> libraryAtomic(const CallBase &Call) {
  for (const LibraryAccess &A : libraryAccesses(Call))
    if (A.isAtomic())
      return LibraryAtomic{Call.getArgOperand(A.Pointer), A.Kind, orderAt(Call, A.Order),
                           orderAt(Call, A.OrderElse)};
  return std::nullopt;
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
  const StringRef Plain = GlobalValue::dropLLVMManglingEscape(Call.getCalledFunction()->getName());
  const std::string Name = (OwnPrefix + Plain).str();
  if (GlobalValue *Known = M.getNamedValue(Name))
    return Known;
  return new GlobalVariable(M, Type::getInt8Ty(M.getContext()), /*isConstant=*/true,
                            GlobalValue::ExternalWeakLinkage, nullptr, Name);
}

Value *stringBytes(IRBuilder<> &B, Value *Own, Value *Start) {
  return ask(B, "__memlode_extent_string", {Own, Start, Constant::getAllOnesValue(B.getInt64Ty())});
}

/// Gives \p Named, which is called like a function of the library, its second name: one of \p Address.
static void markOwn(Module &M, GlobalValue &Named, Constant *Address) {
  const StringRef Plain = GlobalValue::dropLLVMManglingEscape(Named.getName());
  if (Named.hasAvailableExternallyLinkage() || Named.hasLocalLinkage() ||
      !(rowsByName().contains(Plain) || handsOutBlocks(Plain)))
    return;
  const std::string Name = (OwnPrefix + Plain).str();
  GlobalValue *Referred = M.getNamedValue(Name);
  if (Referred && !Referred->isDeclaration())
    return;
  auto *Own = GlobalAlias::create(Named.getValueType(), 0, Named.getLinkage(), Name, Address, &M);
  Own->setVisibility(Named.getVisibility());
  Own->setDSOLocal(Named.isDSOLocal());
  if (!Referred)
    return;
  Own->takeName(Referred);
  Referred->replaceAllUsesWith(Own);
  Referred->eraseFromParent();
}

void markOwnDefinitions(Module &M) {
  for (Function &F : M)
    if (!F.isDeclaration())
      markOwn(M, F, &F);
  SmallVector<GlobalAlias *, 4> Aliases;
  for (GlobalAlias &A : M.aliases())
    Aliases.push_back(&A);
  for (GlobalAlias *A : Aliases)
    markOwn(M, *A, A->getAliasee());
  // Nobody calls by the second name: of an ifunc any address will do.
  for (GlobalIFunc &I : M.ifuncs())
    markOwn(M, I, I.getResolver());
}

} // namespace memlode
