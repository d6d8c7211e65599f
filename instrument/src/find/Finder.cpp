//===- Finder.cpp ---------------------------------------------------------===//

#include "find/Finder.h"

#include "LlvmCompat.h"
#include "find/AssemblyText.h"
#include "memlode_format.h"
#include "prepare/HiddenCalls.h"
#include "prepare/OwnTransfers.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstVisitor.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace memlode {

Direction Access::direction() const {
  switch (Kind) {
  case MEMLODE_KIND_LOAD:
    return Direction::Read;
  case MEMLODE_KIND_STORE:
    return Direction::Write;
  default:
    return Direction::Both;
  }
}

static bool isFullFence(const Instruction &I) {
  if (const auto *Fence = dyn_cast<FenceInst>(&I))
    return Fence->getOrdering() == AtomicOrdering::SequentiallyConsistent &&
           Fence->getSyncScopeID() != SyncScope::SingleThread;
  const auto *II = dyn_cast<IntrinsicInst>(&I);
  return II && II->getIntrinsicID() == Intrinsic::x86_sse2_mfence;
}

/// Returns whether \p I stores the value that is already there, and the code generator knows it
/// (AtomicExpand, and on x86 the lowering of `or` with 0). On other processors the store remains.
static bool leavesMemory(const AtomicRMWInst &I) {
  const auto *By = dyn_cast<ConstantInt>(I.getValOperand());
  if (!By || By->getBitWidth() > 64 || I.isVolatile() || I.getSyncScopeID() == SyncScope::SingleThread ||
      targetOf(*I.getModule()).getArch() != Triple::x86_64)
    return false;
  switch (I.getOperation()) {
  case AtomicRMWInst::Add:
  case AtomicRMWInst::Sub:
  case AtomicRMWInst::Or:
  case AtomicRMWInst::Xor:
    return By->isZero();
  case AtomicRMWInst::And:
    return By->isMinusOne();
  default:
    return false;
  }
}

/// Returns whether \p I may be or become an access that is recorded.
static bool mayAccess(const Instruction &I) {
  return I.mayReadOrWriteMemory() && !isa<FenceInst>(I) && !I.isDebugOrPseudoInst() &&
         !I.isLifetimeStartOrEnd();
}

/// The load whose value \p Store adds to and writes back; null if it does anything else. Only the
/// addition uses the value, so only the sum counts, in any order of additions.
static const LoadInst *addedTo(const StoreInst &Store) {
  const auto *Sum = dyn_cast<BinaryOperator>(Store.getValueOperand());
  if (!Sum || !Sum->hasOneUse())
    return nullptr;
  const auto Is = Sum->getOpcode();
  const bool Adds = Is == Instruction::Add || Is == Instruction::FAdd;
  if (!Adds && Is != Instruction::Sub && Is != Instruction::FSub)
    return nullptr;
  for (unsigned At = 0; At < (Adds ? 2 : 1); ++At) {
    const auto *Load = dyn_cast<LoadInst>(Sum->getOperand(At));
    if (Load && Load->hasOneUse() && Load->getPointerOperand() == Store.getPointerOperand() &&
        Load->getParent() == Store.getParent())
      return Load;
  }
  return nullptr;
}

static bool isOfAddition(const StoreInst &Store) { return addedTo(Store) != nullptr; }

static bool isOfAddition(const LoadInst &Load) {
  if (!Load.hasOneUse())
    return false;
  const auto *Sum = dyn_cast<BinaryOperator>(*Load.user_begin());
  const auto *Store = Sum && Sum->hasOneUse() ? dyn_cast<StoreInst>(*Sum->user_begin()) : nullptr;
  return Store && addedTo(*Store) == &Load;
}

/// Returns whether \p I adds to memory, and its old value is not used.
static bool isAddition(const AtomicRMWInst &I) {
  switch (I.getOperation()) {
  case AtomicRMWInst::Add:
  case AtomicRMWInst::Sub:
  case AtomicRMWInst::FAdd:
  case AtomicRMWInst::FSub:
    return I.use_empty();
  default:
    return false;
  }
}

/// Returns whether a full fence stands behind \p I before the next access, or in front of it where it is the
/// block's first.
static bool isFenced(const Instruction &I) {
  for (const Instruction *Next = I.getNextNode(); Next; Next = Next->getNextNode()) {
    if (isFullFence(*Next))
      return true;
    if (mayAccess(*Next))
      break;
  }
  bool Begins = false;
  for (const Instruction *Before = I.getPrevNode(); Before; Before = Before->getPrevNode()) {
    if (isFullFence(*Before))
      Begins = true;
    else if (mayAccess(*Before))
      return false;
  }
  return Begins;
}

namespace {

class Visitor : public InstVisitor<Visitor> {
public:
  Visitor(const DataLayout &DL, const TargetLibraryInfo &TLI, const LibraryRanges &Ranges,
          const IntrinsicRanges &Operands, const Registers &NoMemory)
      : DL(DL), TLI(TLI), Ranges(Ranges), Operands(Operands), NoMemory(NoMemory) {}

  Findings Found;

  void visitInstruction(Instruction &I) {
    if (I.mayReadOrWriteMemory() && !isa<FenceInst>(I))
      skip(MEMLODE_LEFT_OUT_INTRINSIC, "UnknownInstruction", "this kind of instruction is not recorded");
  }

  void visitLoadInst(LoadInst &I) {
    const unsigned Adds = isOfAddition(I) ? MEMLODE_FLAG_ADDS : 0;
    plain(I, I.getPointerOperand(), I.getType(), MEMLODE_KIND_LOAD, flagsOfPlain(I) | Adds);
  }

  void visitStoreInst(StoreInst &I) {
    const unsigned Adds = isOfAddition(I) ? MEMLODE_FLAG_ADDS : 0;
    plain(I, I.getPointerOperand(), I.getValueOperand()->getType(), MEMLODE_KIND_STORE,
          flagsOfPlain(I) | Adds);
  }

  void visitAtomicRMWInst(AtomicRMWInst &I) {
    if (leavesMemory(I)) {
      // The back end drops the one, as its fence is all that is left, and makes a fence and a load of the
      // others.
      if (I.getOperation() != AtomicRMWInst::Or || !I.use_empty())
        plain(I, I.getPointerOperand(), I.getType(), MEMLODE_KIND_LOAD,
              order(I.getOrdering(), I.getSyncScopeID()));
      return;
    }
    plain(I, I.getPointerOperand(), I.getType(), MEMLODE_KIND_UPDATE,
          order(I.getOrdering(), I.getSyncScopeID()) | (I.isVolatile() ? MEMLODE_FLAG_VOLATILE : 0) |
              (isAddition(I) ? MEMLODE_FLAG_ADDS : 0));
  }

  void visitAtomicCmpXchgInst(AtomicCmpXchgInst &I) {
    plain(I, I.getPointerOperand(), I.getNewValOperand()->getType(), MEMLODE_KIND_UPDATE,
          order(I.getMergedOrdering(), I.getSyncScopeID()) | (I.isVolatile() ? MEMLODE_FLAG_VOLATILE : 0));
  }

  void visitIntrinsicInst(IntrinsicInst &II) {
    if (auto *Transfer = dyn_cast<AnyMemTransferInst>(&II)) {
      unsigned Flags = flagsOf(*Transfer);
      range(II, Transfer->getRawSource(), Transfer->getLength(), MEMLODE_KIND_LOAD, Flags);
      range(II, Transfer->getRawDest(), Transfer->getLength(), MEMLODE_KIND_STORE, Flags);
      return;
    }
    if (auto *Set = dyn_cast<AnyMemSetInst>(&II)) {
      range(II, Set->getRawDest(), Set->getLength(), MEMLODE_KIND_STORE, flagsOf(*Set));
      return;
    }
    switch (II.getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_store:
      masked(II, Access::Shape::Masked, maskedOperands(II));
      return;
    case Intrinsic::masked_gather:
    case Intrinsic::masked_scatter:
      masked(II, Access::Shape::Gather, maskedOperands(II));
      return;
    case Intrinsic::masked_expandload:
      masked(II, Access::Shape::Compressed, {II.getArgOperand(0), II.getArgOperand(1), nullptr});
      return;
    case Intrinsic::masked_compressstore:
      masked(II, Access::Shape::Compressed, {II.getArgOperand(1), II.getArgOperand(2), II.getArgOperand(0)});
      return;
    case Intrinsic::prefetch:
      // One byte, as a prefetch is of one line. Those of instructions fetch code.
      if (cast<ConstantInt>(II.getArgOperand(3))->isOne())
        plain(II, II.getArgOperand(0), Type::getInt8Ty(II.getContext()), MEMLODE_KIND_LOAD,
              MEMLODE_FLAG_PREFETCH);
      return;
    case Intrinsic::vastart:
    case Intrinsic::vacopy:
      if (Value *Length = argumentList(*II.getModule())) {
        if (II.getIntrinsicID() == Intrinsic::vacopy)
          range(II, II.getArgOperand(1), Length, MEMLODE_KIND_LOAD, 0);
        range(II, II.getArgOperand(0), Length, MEMLODE_KIND_STORE, 0);
        return;
      }
      break;
    default:
      break;
    }
    // Markers say that they write memory only to stay in place; what truly reads or writes takes a pointer.
    if (!II.mayReadOrWriteMemory() || II.isLifetimeStartOrEnd() || II.isAssumeLikeIntrinsic() ||
        II.isDebugOrPseudoInst())
      return;
    if (none_of(II.args(), [](const Use &U) { return U->getType()->isPtrOrPtrVectorTy(); }))
      return;
    if (const auto Known = intrinsicAccesses(II))
      intrinsic(II, *Known);
    else
      skip(MEMLODE_LEFT_OUT_INTRINSIC, "UnknownIntrinsic",
           "this intrinsic touches memory that is not recorded");
  }

  void visitCallBase(CallBase &Call) {
    if (const auto *Asm = dyn_cast<InlineAsm>(Call.getCalledOperand())) {
      visitInlineAsm(Call, *Asm);
      return;
    }
    switch (libraryTransfer(Call, TLI)) {
    case Transfer::None:
      break;
    case Transfer::Copy:
      range(Call, Call.getArgOperand(1), Call.getArgOperand(2), MEMLODE_KIND_LOAD, 0);
      range(Call, Call.getArgOperand(0), Call.getArgOperand(2), MEMLODE_KIND_STORE, 0);
      break;
    case Transfer::CopyFrom:
      range(Call, Call.getArgOperand(0), Call.getArgOperand(2), MEMLODE_KIND_LOAD, 0);
      range(Call, Call.getArgOperand(1), Call.getArgOperand(2), MEMLODE_KIND_STORE, 0);
      break;
    case Transfer::Fill:
      range(Call, Call.getArgOperand(0), Call.getArgOperand(2), MEMLODE_KIND_STORE, 0);
      break;
    case Transfer::Clear:
      range(Call, Call.getArgOperand(0), Call.getArgOperand(1), MEMLODE_KIND_STORE, 0);
      break;
    }
    visitLibraryCall(Call);
    for (unsigned I = 0; I < Call.arg_size(); ++I) {
      if (!Call.isByValArgument(I))
        continue;
      plain(Call, Call.getArgOperand(I), Call.getParamByValType(I), MEMLODE_KIND_LOAD, 0);
      // What is written is recorded by the function that gets it as an argument of its own.
      if (I >= Call.getFunctionType()->getNumParams())
        skip(MEMLODE_LEFT_OUT_BY_VALUE, "ByvalCopy",
             "the copy of a variadic argument is recorded where it is read, not where it is written");
    }
  }

private:
  /// The most lanes that a mask of one word describes.
  static constexpr unsigned MostLanes = 64;
  /// Bytes that are compared by loads in the place of the call, whichever library defines the
  /// function.
  static constexpr uint64_t ComparedInline = 16;

  void visitLibraryCall(CallBase &Call) {
    unsigned Number = 0;
    for (const LibraryAccess &Looks : libraryAccesses(Call)) {
      const LibraryRange Range = Ranges.of(Call, Number++);
      Access A;
      A.I = &Call;
      A.Is = Access::Shape::Range;
      A.Kind = Looks.Kind;
      A.Pointer = Looks.Pointer == LibraryAccess::Result ? static_cast<Value *>(&Call)
                                                         : Call.getArgOperand(Looks.Pointer);
      A.Flags = Looks.Approximate ? MEMLODE_FLAG_APPROXIMATE : 0;
      if (Looks.isAtomic()) {
        const LibraryAtomic Is = *libraryAtomic(Call);
        A.Flags |= order(getMergedAtomicOrdering(Is.Order, Is.OrElse), SyncScope::System);
        A.Flags &= Looks.Kind == MEMLODE_KIND_LOAD    ? ~MEMLODE_FLAG_RELEASE
                   : Looks.Kind == MEMLODE_KIND_STORE ? ~MEMLODE_FLAG_ACQUIRE
                                                      : ~0U;
      }
      A.Transfer = true;
      const auto *Constant =
          Looks.Is == LibraryAccess::Extent::Bytes && Looks.Kind == MEMLODE_KIND_LOAD && Looks.Unit == 1
              ? dyn_cast<ConstantInt>(Call.getArgOperand(Looks.A))
              : nullptr;
      if (Constant && !Call.isNoBuiltin() && Constant->getValue().ule(ComparedInline)) {
        A.Is = Access::Shape::Plain;
        A.Bytes = Constant->getZExtValue();
        if (A.Bytes == 0)
          continue;
      } else if (Range.Pointer) {
        A.Pointer = Range.Pointer;
        A.Length = Range.Bytes;
        A.Behind = Range.Behind;
      }
      if (Looks.isKnownBehind() && Call.isMustTailCall())
        skip(MEMLODE_LEFT_OUT_TAIL_CALL, "TailCall",
             "what a library function read is known behind a call that has nothing behind it");
      else
        add(A, A.Pointer);
    }
  }

  /// Returns the guarantee that an atomic access gives to other threads. One that is meant for
  /// signal handlers of the same thread gives none.
  static unsigned order(AtomicOrdering Order, SyncScope::ID Scope) {
    if (Scope == SyncScope::SingleThread)
      return MEMLODE_FLAG_ATOMIC;
    return MEMLODE_FLAG_ATOMIC | (isAcquireOrStronger(Order) ? MEMLODE_FLAG_ACQUIRE : 0) |
           (isReleaseOrStronger(Order) ? MEMLODE_FLAG_RELEASE : 0) |
           (Order == AtomicOrdering::SequentiallyConsistent ? MEMLODE_FLAG_SEQUENTIAL : 0);
  }

  /// Flags of a load or a store.
  template <typename T> static unsigned flagsOfPlain(const T &I) {
    unsigned Flags = I.isAtomic() ? order(I.getOrdering(), I.getSyncScopeID()) : 0;
    if (isa<LoadInst>(I))
      Flags &= ~MEMLODE_FLAG_RELEASE;
    else
      Flags &= ~MEMLODE_FLAG_ACQUIRE;
    return Flags | (I.isVolatile() ? MEMLODE_FLAG_VOLATILE : 0) |
           (I.hasMetadata(LLVMContext::MD_nontemporal) ? MEMLODE_FLAG_NON_TEMPORAL : 0);
  }

  void skip(uint8_t Reason, const char *Remark, const char *Why) {
    Found.Skips.push_back({Reason, Remark, Why});
  }

  template <typename T> static unsigned flagsOf(const T &Intrinsic) {
    return (isa<AnyMemIntrinsic>(Intrinsic) && !isa<MemIntrinsic>(Intrinsic) ? MEMLODE_FLAG_ATOMIC : 0) |
           (Intrinsic.isVolatile() ? MEMLODE_FLAG_VOLATILE : 0);
  }

  /// Returns how many bytes of a `va_list` are written when it begins, or null where that is not known.
  static Value *argumentList(const Module &M) {
    // System V ABI for AMD64, 3.5.7: two offsets and two pointers.
    constexpr uint64_t Bytes = 24;
    const Triple Target = targetOf(M);
    const bool IsKnown = Target.getArch() == Triple::x86_64 && !Target.isOSWindows() && !Target.isX32();
    return IsKnown ? ConstantInt::get(Type::getInt64Ty(M.getContext()), Bytes) : nullptr;
  }

  /// Memory operands of assembly: read, written, or both in one.
  void visitInlineAsm(CallBase &Call, const InlineAsm &Asm) {
    if (StringRef(Asm.getAsmString()).empty())
      return;
    const AssemblyText Text = readAssembly(Asm, targetOf(*Call.getModule()));
    MapVector<Value *, std::pair<Type *, unsigned>> Operands;
    unsigned Number = 0;
    for (const InlineAsm::ConstraintInfo &C : Asm.ParseConstraints()) {
      const bool Writes = C.Type == InlineAsm::isOutput;
      if ((!Writes && C.Type != InlineAsm::isInput) || (Writes && !C.isIndirect))
        continue;
      const unsigned At = Number++;
      if (!C.isIndirect || Text.OnlyHints)
        continue;
      constexpr unsigned Kinds[2] = {MEMLODE_KIND_LOAD, MEMLODE_KIND_STORE};
      auto [Found, New] =
          Operands.insert({Call.getArgOperand(At), {Call.getParamElementType(At), Kinds[Writes]}});
      if (!New && Found->second.second != Kinds[Writes])
        Found->second.second = MEMLODE_KIND_UPDATE;
    }
    for (const auto &[Pointer, Is] : Operands)
      if (Is.first)
        plain(Call, Pointer, Is.first, Is.second, Text.IsAtomic ? MEMLODE_FLAG_ATOMIC : 0);
    if (Text.MayTouch)
      skip(MEMLODE_LEFT_OUT_ASSEMBLY, "InlineAsm",
           "inline assembly may touch memory other than its operands; that is not recorded");
  }

  /// Adds \p A, unless no address of the program can name its memory.
  void add(Access A, const Value *Pointer) {
    const Type *T = Pointer->getType()->getScalarType();
    if (T->getPointerAddressSpace() != 0) {
      skip(MEMLODE_LEFT_OUT_ADDRESS_SPACE, "AddressSpace",
           "the access is in another address space than the program's data");
      return;
    }
    if (Pointer->isSwiftError()) // a register dressed up as memory
      return;
    if (const auto *Slot = dyn_cast<AllocaInst>(Pointer); Slot && NoMemory.contains(Slot))
      return;
    if (T == Pointer->getType())
      A.Flags |= originOf(Pointer);
    if (isFenced(*A.I))
      A.Flags |= MEMLODE_FLAG_FENCED;
    Found.Accesses.push_back(A);
  }

  static unsigned originOf(const Value *Pointer) {
    const Value *Object = getUnderlyingObject(Pointer);
    if (isa<AllocaInst>(Object))
      return MEMLODE_FLAG_STACK;
    if (const auto *A = dyn_cast<Argument>(Object))
      return A->hasByValAttr() ? MEMLODE_FLAG_STACK : 0;
    if (isa<GlobalValue>(Object) || threadLocalOf(Object))
      return MEMLODE_FLAG_GLOBAL;
    return 0;
  }

  void plain(Instruction &I, Value *Pointer, Type *T, unsigned Kind, unsigned Flags) {
    TypeSize Bytes = DL.getTypeStoreSize(T);
    if (Bytes.isScalable()) {
      skip(MEMLODE_LEFT_OUT_VECTOR, "ScalableVector", "the number of bytes is not known when compiling");
      return;
    }
    if (T->isVectorTy())
      Flags |= MEMLODE_FLAG_VECTOR;
    Access A;
    A.I = &I;
    A.Pointer = Pointer;
    A.Kind = Kind;
    A.Bytes = Bytes.getFixedValue();
    A.Flags = Flags;
    if (A.Bytes != 0)
      add(A, Pointer);
  }

  void range(Instruction &I, Value *Pointer, Value *Length, unsigned Kind, unsigned Flags) {
    Access A;
    A.I = &I;
    A.Pointer = Pointer;
    A.Kind = Kind;
    A.Flags = Flags;
    A.Transfer = true;
    const auto *Constant = dyn_cast<ConstantInt>(Length);
    // A structure copy: one access of so many bytes needs no word for its length.
    if (Constant && Constant->getValue().ule(UINT32_MAX)) {
      A.Bytes = Constant->getZExtValue();
      if (A.Bytes == 0)
        return;
    } else {
      A.Is = Access::Shape::Range;
      A.Length = Length;
    }
    add(A, Pointer);
  }

  /// Returns whether \p Lanes of \p Bytes each can be recorded under a mask; reports it if not.
  bool fits(unsigned Lanes, uint64_t Bytes) {
    if (Lanes == 0 || Bytes == 0)
      skip(MEMLODE_LEFT_OUT_VECTOR, "ScalableVector", "the number of lanes is not known when compiling");
    else if (Lanes > MostLanes)
      skip(MEMLODE_LEFT_OUT_VECTOR, "WideMask", "the access has more than 64 lanes");
    else
      return true;
    return false;
  }

  void intrinsic(IntrinsicInst &II, ArrayRef<IntrinsicAccess> All) {
    unsigned Number = 0;
    for (const IntrinsicAccess &Touches : All) {
      const IntrinsicOperands Known = Operands.of(II, Number++);
      Access A;
      A.I = &II;
      A.Pointer = Known.Pointer ? Known.Pointer : II.getArgOperand(Touches.Pointer);
      A.Kind = Touches.Kind;
      A.Bytes = bytesOf(II, Touches);
      A.Lanes = lanesOf(II, Touches);
      A.Mask = Known.Mask;
      A.Flags = Touches.Flags;
      if (!fits(A.Lanes, A.Bytes))
        continue;
      if (Touches.Is == IntrinsicAccess::Form::Plain) {
        A.Lanes = 0;
        A.Flags |= A.Bytes > 8 && !(A.Flags & MEMLODE_FLAG_APPROXIMATE) ? MEMLODE_FLAG_VECTOR : 0;
      } else if (Touches.Is == IntrinsicAccess::Form::Pattern) {
        A.Is = Access::Shape::Range;
        A.Lanes = 0;
        A.Length = Known.Length;
        A.Transfer = true;
      } else {
        const bool IsRow = Touches.Is == IntrinsicAccess::Form::Masked;
        A.Is = IsRow ? Access::Shape::Masked : Access::Shape::Gather;
        A.Flags |= MEMLODE_FLAG_VECTOR;
      }
      add(A, A.Pointer);
    }
  }

  void masked(IntrinsicInst &II, Access::Shape Shape, MaskedOperands Operands) {
    auto *T = dyn_cast<FixedVectorType>(Operands.Stored ? Operands.Stored->getType() : II.getType());
    // Lanes that are no whole bytes lie in memory side by side.
    if (T && !DL.typeSizeEqualsStoreSize(T->getElementType())) {
      skip(MEMLODE_LEFT_OUT_VECTOR, "BitLanes", "the lanes are no whole bytes");
      return;
    }
    if (!fits(T ? T->getNumElements() : 0, 1))
      return;
    Access A;
    A.I = &II;
    A.Pointer = Operands.Pointer;
    A.Is = Shape;
    A.Kind = Operands.Stored ? MEMLODE_KIND_STORE : MEMLODE_KIND_LOAD;
    A.Bytes = DL.getTypeStoreSize(T->getElementType());
    A.Mask = Operands.Mask;
    A.Lanes = T->getNumElements();
    A.Flags = MEMLODE_FLAG_VECTOR;
    add(A, Operands.Pointer);
  }

  const DataLayout &DL;
  const TargetLibraryInfo &TLI;
  const LibraryRanges &Ranges;
  const IntrinsicRanges &Operands;
  const Registers &NoMemory;
};

} // namespace

Finder::Finder(const Function &F, const TargetLibraryInfo &TLI, const LibraryRanges &Ranges,
               const IntrinsicRanges &Operands, Registers NoMemory)
    : DL(F.getParent()->getDataLayout()), TLI(TLI), Ranges(Ranges), Operands(Operands),
      NoMemory(std::move(NoMemory)), InTransfer(isTransfer(F, TLI)) {}

Findings Finder::find(Instruction &I) const {
  Visitor V(DL, TLI, Ranges, Operands, NoMemory);
  V.visit(I);
  for (unsigned Number = 0; Number < V.Found.Accesses.size(); ++Number)
    V.Found.Accesses[Number].Number = Number;
  // What a function that copies or fills does through the pointers it is given is recorded by whoever calls
  // it.
  if (InTransfer)
    erase_if(V.Found.Accesses, [](const Access &A) { return leadsFromArgument(A.Pointer); });
  return std::move(V.Found);
}

/// Behind the numbers of an instruction's own accesses.
static constexpr unsigned FirstParameter = 1U << 16;

SmallVector<Access, 2> Finder::parameters(Function &F) const {
  SmallVector<Access, 2> Found;
  for (Argument &Parameter : F.args()) {
    if (!Parameter.hasByValAttr() || Parameter.getType()->getPointerAddressSpace() != 0)
      continue;
    Access A;
    A.I = F.getEntryBlock().getTerminator();
    A.IsParameter = true;
    A.Pointer = &Parameter;
    A.Kind = MEMLODE_KIND_STORE;
    A.Bytes = DL.getTypeStoreSize(Parameter.getParamByValType()).getFixedValue();
    A.Flags = MEMLODE_FLAG_STACK;
    A.Number = FirstParameter + Parameter.getArgNo();
    if (A.Bytes != 0)
      Found.push_back(A);
  }
  return Found;
}

} // namespace memlode
