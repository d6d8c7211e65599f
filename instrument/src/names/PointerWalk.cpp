//===- PointerWalk.cpp ----------------------------------------------------===//
#include "names/PointerWalk.h"
#include "names/AddressParts.h"
#include "names/Fortran.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxWalkDepth = 128;    ///< of the walk; longer chains were met from their other end before
constexpr unsigned MaxBeliefs = 8;        ///< beliefs kept for one pointer
constexpr unsigned MaxTemporaryUses = 16; ///< of a temporary, to find out its type
constexpr size_t MaxChoices = 3;          ///< other members that one pointer may lead to

/// `find<int>` → `find`, and the operators keep their angle brackets.
StringRef plainName(StringRef Name) {
  if (Name.starts_with("operator<") || Name.starts_with("operator>") || Name.starts_with("operator->"))
    return Name;
  return Name.take_until([](char C) { return C == '<'; });
}

/// Returns whether \p Other is a place like \p P: the same kind of object at the same offset, or another part
/// of the same object, which is noted.
bool agrees(Place &P, const Place &Other) {
  if (TypeNames::strip(P.Type) != TypeNames::strip(Other.Type) || P.Indirect != Other.Indirect)
    return false;
  int64_t Distance = Other.Offset - P.Offset, Bytes = TypeNames::bytes(P.Type);
  if (Distance == 0 || (Bytes && Distance % Bytes == 0) || is_contained(P.Choices, Distance))
    return true;
  if (P.Text != Other.Text || P.Variable != Other.Variable || P.Frame != Other.Frame || P.Indirect ||
      !P.Strides.empty() || !Other.Strides.empty() || P.Choices.size() >= MaxChoices)
    return false;
  // `key < n->key ? &n->left : &n->right`
  P.Via = nullptr;
  P.Choices.push_back(Distance);
  return true;
}

/// Adds a stride that the address gets from a loop's pointer phi, `p = phi [start], [p + 24]`.
void addLoopStride(const PHINode &N, SmallVectorImpl<uint64_t> &Strides, const DataLayout &Layout) {
  for (const Value *In : N.incoming_values()) {
    auto *G = dyn_cast<GEPOperator>(In);
    if (!G || G->getPointerOperand() != &N)
      continue;
    AddressParts Parts = addressParts(*G, Layout);
    if (Parts.Strides.empty() && Parts.Offset &&
        !is_contained(Strides, static_cast<uint64_t>(std::abs(Parts.Offset))))
      Strides.push_back(std::abs(Parts.Offset));
  }
}

} // namespace

PointerWalk::PointerWalk(Function &F, TypeNames &Types, bool AsWritten)
    : AsWritten(AsWritten), Fortran(isFortran(F)), Types(Types), Layout(F.getParent()->getDataLayout()),
      Records(F) {}

ArrayRef<Place> PointerWalk::places(const Value *V) {
  auto [It, New] = Memo.try_emplace(V, nullptr);
  if (!New)
    return *It->second;
  // What is found is filed as it comes, so that a loop that leads back here sees what is known already.
  It->second = std::make_unique<Places>();
  Places &Out = *It->second;
  if (Depth < MaxWalkDepth) {
    ++Depth;
    find(V, Out);
    --Depth;
  }
  return Out;
}

void PointerWalk::find(const Value *V, Places &Out) {
  Records.places(V, Out);
  if (auto *A = dyn_cast<AllocaInst>(V))
    fromAlloca(*A, Out);
  else if (auto *A = dyn_cast<Argument>(V))
    fromArgument(*A, Out);
  else if (auto *G = dyn_cast<GlobalVariable>(V))
    fromGlobal(*G, Out);
  else if (auto *A = dyn_cast<GlobalAlias>(V))
    borrow(A->getAliasee(), Out);
  else if (auto *G = dyn_cast<GEPOperator>(V))
    fromOffset(*G, Out);
  else if (auto *L = dyn_cast<LoadInst>(V))
    fromLoad(*L, Out);
  else if (auto *P = dyn_cast<PHINode>(V))
    fromPhi(*P, Out);
  else if (auto *S = dyn_cast<SelectInst>(V))
    first({S->getTrueValue(), S->getFalseValue()}, Out);
  else if (auto *C = dyn_cast<CallBase>(V))
    fromCall(*C, Out);
  else if (auto *E = dyn_cast<ExtractValueInst>(V))
    fromAggregate(*E, Out);
  else if (isa<FreezeInst>(V) || isa<BitCastOperator>(V) || isa<AddrSpaceCastOperator>(V))
    borrow(cast<User>(V)->getOperand(0), Out);
  else if (auto *O = dyn_cast<Operator>(V); O && O->getOpcode() == Instruction::IntToPtr)
    fromInteger(O->getOperand(0), Out);
  else if (auto *E = dyn_cast<ExtractElementInst>(V))
    borrow(E->getVectorOperand(), Out);
  else if (auto *E = dyn_cast<InsertElementInst>(V))
    first({E->getOperand(1), E->getOperand(0)}, Out);
  else if (auto *S = dyn_cast<ShuffleVectorInst>(V))
    first({S->getOperand(0), S->getOperand(1)}, Out);
  if (Out.size() > MaxBeliefs)
    Out.truncate(MaxBeliefs);
}

//===- Roots --------------------------------------------------------------===//

void PointerWalk::fromGlobal(const GlobalVariable &G, Places &Out) {
  SmallVector<DIGlobalVariableExpression *, 1> Infos;
  G.getDebugInfo(Infos);
  for (const DIGlobalVariableExpression *Info : Infos) {
    Place P;
    if (!DebugRecords::globalPlace(*Info, P))
      continue;
    const DIGlobalVariable *Var = Info->getVariable();
    P.Text = Types.qualified(Var->getScope(), Var->getName());
    Out.push_back(std::move(P));
  }
  if (!Infos.empty())
    return;
  // Tables that the compiler made, globals of units without debug info. String literals have no name to speak
  // of.
  Place P;
  const Type *T = G.getValueType();
  while (auto *A = dyn_cast<ArrayType>(T))
    T = A->getElementType();
  P.Type = Types.byStruct(dyn_cast<StructType>(T));
  P.Repeats = true;
  if (!G.hasPrivateLinkage() || !G.getName().starts_with(".str"))
    P.Text = demangle(G.getName());
  Out.push_back(std::move(P));
}

void PointerWalk::fromAlloca(const AllocaInst &A, Places &Out) {
  if (!Out.empty())
    return;
  if (const Value *From = Fortran ? copiedInto(A) : nullptr)
    return borrow(From, Out);
  const Type *T = A.getAllocatedType();
  while (auto *Array = dyn_cast<ArrayType>(T))
    T = Array->getElementType();
  const DIType *Record = Types.byStruct(dyn_cast<StructType>(T));
  if (!Record)
    Record = passedAs(A);
  if (Record) {
    Place P; // a temporary: it has a type and no name
    P.Type = Record;
    P.Repeats = true;
    Out.push_back(std::move(P));
  }
}

/// The type of a temporary that LLVM knows as bytes: the return type of the call that writes it,
/// the parameter it is passed for, or the object it is copied from or to.
const DIType *PointerWalk::passedAs(const AllocaInst &Slot) {
  auto Bytes = Slot.getAllocationSize(Layout);
  if (!Bytes || Bytes->isScalable())
    return nullptr;
  auto fits = [&](const DIType *T) {
    return T && isa_and_nonnull<DICompositeType>(TypeNames::strip(T)) &&
           TypeNames::bytes(T) == Bytes->getFixedValue();
  };
  const DIType *Copied = nullptr;
  unsigned Seen = 0;
  for (const Use &U : Slot.uses()) {
    if (++Seen > MaxTemporaryUses)
      break;
    auto *C = dyn_cast<CallBase>(U.getUser());
    if (!C || !C->isArgOperand(&U))
      continue;
    if (auto *M = dyn_cast<MemTransferInst>(C)) {
      auto *Length = dyn_cast<ConstantInt>(M->getLength());
      const Value *Other = M->getRawSource() == &Slot ? M->getRawDest() : M->getRawSource();
      if (!Copied && Other != &Slot && Length && Length->getZExtValue() == Bytes->getFixedValue())
        for (const Place &P : places(Other))
          if (P.Offset == 0 && P.Strides.empty() && !P.Indirect && fits(P.Type)) {
            Copied = P.Type;
            break;
          }
      continue;
    }
    const DISubprogram *Callee;
    const DIType *Result = returnType(*C, Callee);
    unsigned Position = C->getArgOperandNo(&U);
    bool Slotted = Position == 0 && C->getType()->isVoidTy() && fits(Result);
    if (Slotted && (C->hasStructRetAttr() || C->paramHasAttr(0, Attribute::DeadOnUnwind)))
      return Result;
    DITypeRefArray Declared =
        Callee && Callee->getType() ? Callee->getType()->getTypeArray() : DITypeRefArray();
    unsigned Hidden = C->getType()->isVoidTy() && Result ? 1 : 0;
    if (!Declared || Declared.size() + Hidden != C->arg_size() + 1 || Position < Hidden)
      continue;
    // By value, or by reference.
    const DIType *Parameter = Declared[Position - Hidden + 1];
    auto To = TypeNames::pointee(Parameter);
    if (fits(Parameter))
      return Parameter;
    if (To && fits(*To))
      return *To;
  }
  return Copied;
}

/// The type of the value at \p A's address, if that is the slot for the result. The attribute for
/// it gets lost when a function becomes private to its module; the other marks of such a slot stay.
static const DIType *resultAt(const Argument &A) {
  const Function &F = *A.getParent();
  const DISubprogram *SP = F.getSubprogram();
  DITypeRefArray Declared = SP && SP->getType() ? SP->getType()->getTypeArray() : DITypeRefArray();
  if (!Declared || !Declared.size() || !Declared[0])
    return nullptr;
  if (A.hasStructRetAttr())
    return Declared[0];
  bool Slot = A.getArgNo() == 0 && F.getReturnType()->isVoidTy() && A.hasAttribute(Attribute::Writable) &&
              A.hasAttribute(Attribute::DeadOnUnwind);
  return Slot && A.getDereferenceableBytes() == TypeNames::bytes(Declared[0]) ? Declared[0] : nullptr;
}

void PointerWalk::fromArgument(const Argument &A, Places &Out) {
  if (!Out.empty())
    return;
  const DISubprogram *SP = A.getParent()->getSubprogram();
  const Type *Passed = A.hasStructRetAttr() ? A.getParamStructRetType()
                       : A.hasByValAttr()   ? A.getParamByValType()
                                            : nullptr;
  const DIType *Record = Types.byStruct(dyn_cast_or_null<StructType>(Passed));
  if (!Record)
    Record = resultAt(A);
  if (Record) {
    Place P;
    P.Type = Record;
    // Before optimisation the variable that is returned in place is known by the slot its address is kept in.
    for (const User *U : A.users())
      if (auto *S = dyn_cast<StoreInst>(U); S && S->getValueOperand() == &A && P.Text.empty())
        for (const Place &Slot : places(S->getPointerOperand()))
          if (Slot.Indirect)
            P.Text = Slot.Text;
    Out.push_back(std::move(P));
    return;
  }
  if (!SP || !SP->getType())
    return;
  DITypeRefArray Declared = SP->getType()->getTypeArray();
  unsigned Hidden = A.getParent()->hasStructRetAttr() || resultAt(*A.getParent()->getArg(0)) ? 1 : 0;
  // The lists agree unless the ABI split or dropped a parameter; then positions mean nothing.
  if (!Declared || Declared.size() + Hidden != A.getParent()->arg_size() + 1 || A.getArgNo() < Hidden)
    return;
  unsigned Position = A.getArgNo() - Hidden + 1;
  auto To = TypeNames::pointee(Declared[Position]);
  if (!To)
    return;
  Place P;
  P.Type = *To;
  P.Arrow = !TypeNames::isReference(Declared[Position]);
  P.Repeats = true;
  P.Distance = 1;
  for (const DINode *N : SP->getRetainedNodes())
    if (auto *Var = dyn_cast<DILocalVariable>(N); Var && Var->getArg() == Position) {
      P.Text = nameOf(*Var);
      P.Variable = Var;
    }
  Out.push_back(std::move(P));
}

//===- Steps --------------------------------------------------------------===//

void PointerWalk::borrow(const Value *From, Places &Out) {
  ArrayRef<Place> Found = places(From);
  if (Found.data() == Out.data())
    return; // a phi of itself
  for (const Place &P : Found) {
    Out.push_back(P);
    ++Out.back().Distance;
  }
}

void PointerWalk::first(ArrayRef<const Value *> Values, Places &Out) {
  const Value *Best = nullptr, *Untyped = nullptr;
  size_t Own = Out.size();
  for (const Value *V : Values) {
    if (isa<ConstantPointerNull>(V) || isa<UndefValue>(V))
      continue;
    ArrayRef<Place> Found = places(V);
    if (Best) {
      for (size_t I = Own; I != Out.size(); ++I)
        Out[I].Merged |= none_of(Found, [&](const Place &P) { return agrees(Out[I], P); });
      continue;
    }
    if (Found.empty())
      continue;
    if (!any_of(Found, [](const Place &P) { return P.Type != nullptr; })) {
      Untyped = Untyped ? Untyped : V;
    } else {
      Best = V;
      borrow(V, Out);
    }
  }
  if (!Best && Untyped)
    borrow(Untyped, Out);
}

void PointerWalk::fromPhi(const PHINode &N, Places &Out) {
  size_t Own = Out.size();
  SmallVector<const Value *, 8> In(N.incoming_values());
  first(In, Out);
  for (size_t I = Own; I < Out.size(); ++I)
    addLoopStride(N, Out[I].Strides, Layout);
}

void PointerWalk::fromOffset(const GEPOperator &G, Places &Out) {
  AddressParts Parts = addressParts(G, Layout, AsWritten);
  const Type *Stepped = G.getSourceElementType();
  const DICompositeType *Record = Types.byStruct(dyn_cast<StructType>(Stepped));
  bool Agrees = false, Any = false;
  Place Cast; // what a cast in the source says: `((T *)p)->member`
  for (const Place &Base : places(G.getPointerOperand())) {
    // Of the parts of a structured binding, the one that starts at this step.
    if (!Any || (Base.Offset && Base.Offset + Parts.Offset == 0))
      Cast = Base;
    Any = true;
    Place P = Base;
    P.Offset += Parts.Offset;
    // Fortran steps in bytes by the stride of a descriptor, which is a multiple of the element.
    if (Fortran && Stepped->isIntegerTy(8) && Base.Repeats && !Parts.Strides.empty())
      P.Strides.push_back(TypeNames::bytes(Base.Type));
    else
      P.Strides.append(Parts.Strides.begin(), Parts.Strides.end());
    P.Choices.append(Parts.Choices.begin(), Parts.Choices.end());
    P.ViaOffset += Parts.Offset;
    if (!Parts.Strides.empty() || !Parts.Choices.empty())
      P.Via = nullptr;
    if (Record && Base.Type && !Base.Indirect && holdsAt(Base.Type, probe(Base), Record)) {
      Agrees = true;
      P.Via = Parts.Strides.empty() ? Record : nullptr;
      P.ViaOffset = Parts.Offset;
    }
    // In source order, a step in bytes that leaves the object is arithmetic on `char *`: what is there is no
    // element of an array of such objects. Optimisation writes every step in bytes.
    if (AsWritten && !Fortran && Stepped->isIntegerTy(8) && Base.Repeats && TypeNames::bytes(Base.Type) > 1 &&
        (!Parts.Strides.empty() || P.Offset < 0 ||
         P.Offset >= static_cast<int64_t>(TypeNames::bytes(Base.Type))))
      P.Type = nullptr;
    Out.push_back(std::move(P));
  }
  if (!Record || Agrees)
    return;
  Cast.Type = Record;
  Cast.Offset = Parts.Offset;
  Cast.Strides = Parts.Strides;
  Cast.Choices = Parts.Choices;
  Cast.Repeats = true;
  Cast.Arrow |= Any;
  Cast.Indirect = false;
  Cast.Via = nullptr;
  Out.insert(Out.begin(), Cast);
}

void PointerWalk::fromLoad(const LoadInst &L, Places &Out) {
  std::optional<Reading> R = read(L.getPointerOperand(), shapeOf(L, 0, Types));
  if (!R)
    return;
  Place P;
  P.Variable = R->At.Variable;
  P.Frame = R->At.Frame;
  P.Distance = R->At.Distance + 1;
  if (R->At.Indirect) {
    // Several variables may live behind one address: the parts of a structured binding.
    for (const Place &Slot : places(L.getPointerOperand())) {
      if (!Slot.Indirect || Slot.Offset != R->At.Offset)
        continue;
      P.Type = Slot.Type;
      P.Text = Slot.Text;
      P.Offset = -Slot.Beyond;
      P.Variable = Slot.Variable;
      P.Frame = Slot.Frame;
      Out.push_back(P);
    }
    return;
  }
  P.Repeats = true;
  P.Text = text(*R);
  // A union's pointer may be any of its pointers; whoever uses it knows which fits.
  for (const DIType *Leaf : R->Found.Pointers) {
    P.Type = R->Found.Element ? R->Found.Element : *TypeNames::pointee(Leaf);
    P.Arrow = !TypeNames::isReference(Leaf);
    Out.push_back(P);
  }
  if (R->Found.Pointers.empty() && !P.Text.empty()) {
    P.Arrow = true;
    Out.push_back(std::move(P));
  }
}

const DIType *PointerWalk::returnType(const CallBase &C, const DISubprogram *&Callee) {
  Callee = nullptr;
  const DISubroutineType *Shape = nullptr;
  if (const Function *F = C.getCalledFunction()) {
    Callee = F->getSubprogram();
    Shape = Callee ? Callee->getType() : nullptr;
  } else if (!C.isInlineAsm()) {
    for (const Place &P : places(C.getCalledOperand()))
      if ((Shape = dyn_cast_or_null<DISubroutineType>(TypeNames::strip(P.Type))))
        break;
  }
  DITypeRefArray Declared = Shape ? Shape->getTypeArray() : DITypeRefArray();
  return Declared && Declared.size() ? Declared[0] : nullptr;
}

/// Returns how the source would write the object of type \p Class that \p V points to: `v`, `this->free`.
std::string PointerWalk::partText(const Value *V, const DICompositeType *Class) {
  for (const Place &P : places(V)) {
    if (P.Text.empty() || P.Indirect)
      continue;
    Reading R;
    R.At = P;
    Probe Q = probe(P);
    Q.Part = Class;
    R.Found = land(P.Type, Q);
    return R.Found.Leaf && !R.Found.Member.empty() ? text(R) : P.Text;
  }
  return "";
}

/// Calls read as in the source: `node_of()`, `v.front()`; element access reads as `v[]`, `it`.
std::string PointerWalk::callText(const CallBase &C, const DISubprogram *Callee) {
  if (!Callee)
    return "";
  StringRef Name = plainName(Callee->getName());
  std::string Object;
  DITypeRefArray Declared = Callee->getType() ? Callee->getType()->getTypeArray() : DITypeRefArray();
  auto *Class = dyn_cast_or_null<DICompositeType>(Callee->getScope());
  if (Class && Declared && Declared.size() > 1 && Declared[1] && Declared[1]->isArtificial() && C.arg_size())
    // A structure that is returned is the hidden first argument.
    Object = partText(C.getArgOperand(C.hasStructRetAttr() && C.arg_size() > 1 ? 1 : 0), Class);
  if (Name == "operator[]" || Name == "at")
    return Object.empty() ? "" : Object + "[]";
  if (Name == "operator*" || Name == "operator->" || Name == "get")
    return Object;
  if (Object.empty() || Object == "this")
    return Name.str() + "()";
  return Object + "." + Name.str() + "()";
}

void PointerWalk::fromCall(const CallBase &C, Places &Out) {
  if (const Value *Same = C.getReturnedArgOperand())
    return borrow(Same, Out);
  switch (C.getIntrinsicID()) {
  case Intrinsic::launder_invariant_group:
  case Intrinsic::strip_invariant_group:
  case Intrinsic::threadlocal_address:
  case Intrinsic::ptr_annotation:
  case Intrinsic::ptrmask:
  case Intrinsic::ssa_copy:
    return borrow(C.getArgOperand(0), Out);
  default:
    break;
  }
  if (const Function *F = C.getCalledFunction(); F && !F->isDeclaration() && F->getName().starts_with("_ZTW"))
    // C++ reaches a thread-local variable of another unit through a wrapper that returns its address.
    if (auto *Ret = dyn_cast<ReturnInst>(F->back().getTerminator()))
      if (auto *Address = dyn_cast_or_null<IntrinsicInst>(Ret->getReturnValue());
          Address && Address->getIntrinsicID() == Intrinsic::threadlocal_address)
        return borrow(Address->getArgOperand(0), Out);
  const DISubprogram *Callee;
  const DIType *Result = returnType(C, Callee);
  auto Part = Result ? pointerIn(Result, 0) : std::nullopt;
  if (!Part)
    return;
  Place P;
  P.Type = Part->To;
  if (!TypeNames::strip(P.Type))
    return; // `void *`: the name of an allocator names no data
  P.Text = callText(C, Callee);
  P.Arrow = !TypeNames::isReference(Part->Pointer);
  P.Repeats = true;
  P.Distance = 1;
  Out.push_back(std::move(P));
}

void PointerWalk::fromAggregate(const ExtractValueInst &E, Places &Out) {
  const Value *Whole = E.getAggregateOperand();
  if (Value *Part = FindInsertedValue(const_cast<Value *>(Whole), E.getIndices()); Part && Part != &E)
    return borrow(Part, Out);
  auto *C = dyn_cast<CallBase>(Whole);
  auto *Shape = dyn_cast<StructType>(Whole->getType());
  if (!C || !Shape || E.getNumIndices() != 1)
    return;
  const DISubprogram *Callee;
  uint64_t Offset = Layout.getStructLayout(Shape)->getElementOffset(E.getIndices()[0]);
  const DIType *Result = returnType(*C, Callee);
  auto Part = Result ? pointerIn(Result, Offset) : std::nullopt;
  if (!Part)
    return;
  Place P;
  P.Type = Part->To;
  P.Text = callText(*C, Callee);
  if (!Part->Member.empty() && !P.Text.empty())
    P.Text += "." + Part->Member;
  P.Arrow = !TypeNames::isReference(Part->Pointer);
  P.Repeats = true;
  P.Distance = 1;
  Out.push_back(std::move(P));
}

/// An address computed as an integer: alignment, tag bits, and offsets around a pointer.
void PointerWalk::fromInteger(const Value *V, Places &Out) {
  int64_t Offset = 0;
  for (unsigned I = 0; I != 16; ++I) {
    auto *O = dyn_cast<Operator>(V);
    if (!O)
      break;
    if (O->getOpcode() == Instruction::PtrToInt) {
      V = O->getOperand(0);
      break;
    }
    if (isa<LoadInst>(V) || O->getNumOperands() == 0)
      break;
    auto *K = O->getNumOperands() == 2 ? dyn_cast<ConstantInt>(O->getOperand(1)) : nullptr;
    bool Fits = K && K->getValue().getSignificantBits() <= 64;
    if (O->getOpcode() == Instruction::Add && Fits)
      Offset += K->getSExtValue();
    else if (O->getOpcode() == Instruction::Sub && Fits)
      Offset -= K->getSExtValue();
    else if (O->getOpcode() != Instruction::And && O->getOpcode() != Instruction::Or &&
             O->getOpcode() != Instruction::Freeze && O->getOpcode() != Instruction::Add)
      break;
    V = O->getOperand(0);
  }
  size_t Own = Out.size();
  borrow(V, Out);
  for (size_t I = Own; I < Out.size(); ++I)
    Out[I].Offset += Offset;
}

} // namespace memlode
