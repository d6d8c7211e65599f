//===- ValueUse.cpp -------------------------------------------------------===//
#include "names/ValueUse.h"

#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxValueUses = 16;

/// The pointee of a variable that holds \p V, or of the variable whose slot \p V was just read from.
const DIType *pointeeOf(const Value *V, const DebugRecords &Records) {
  SmallVector<Place, 2> Places;
  Records.places(V, Places);
  for (const Place &P : Places)
    if (P.Repeats && P.Offset == 0 && TypeNames::strip(P.Type))
      return P.Type;
  return nullptr;
}

/// The pointee of the variable that lives at \p Slot.
const DIType *pointeeAt(const Value *Slot, const DebugRecords &Records) {
  SmallVector<Place, 2> Places;
  Records.places(Slot, Places);
  for (const Place &P : Places)
    if (!P.Repeats && !P.Indirect && P.Offset == 0)
      if (auto To = TypeNames::pointee(P.Type))
        return *To;
  return nullptr;
}

const DIType *declared(const DISubprogram *SP, unsigned Position, unsigned Count) {
  DITypeRefArray Types = SP && SP->getType() ? SP->getType()->getTypeArray() : DITypeRefArray();
  if (!Types || Types.size() != Count)
    return nullptr;
  return TypeNames::pointee(Types[Position]).value_or(nullptr);
}

void lookAtUses(const Value &V, const DebugRecords &Records, ValueUse &Out) {
  unsigned Seen = 0;
  for (const Use &U : V.uses()) {
    if (Out.Pointee || ++Seen > MaxValueUses)
      return;
    const auto *I = dyn_cast<Instruction>(U.getUser());
    if (!I)
      continue;
    if (auto *S = dyn_cast<StoreInst>(I); S && S->getValueOperand() == &V) {
      Out.Pointee = pointeeAt(S->getPointerOperand(), Records);
    } else if (isa<StoreInst>(I) || isa<LoadInst>(I) || isa<GetElementPtrInst>(I)) {
      Out.Dereferenced = true;
    } else if (auto *C = dyn_cast<CallBase>(I)) {
      if (C->isCallee(&U))
        Out.Called = true;
      else if (C->isArgOperand(&U) && C->getCalledFunction())
        Out.Pointee =
            declared(C->getCalledFunction()->getSubprogram(), C->getArgOperandNo(&U) + 1, C->arg_size() + 1);
    } else if (isa<ReturnInst>(I)) {
      const DISubprogram *SP = I->getFunction()->getSubprogram();
      if (SP && SP->getType() && SP->getType()->getTypeArray())
        Out.Pointee = declared(SP, 0, SP->getType()->getTypeArray().size());
    }
  }
}

} // namespace

ValueUse useOfValue(const AccessShape &A, const DebugRecords &Records) {
  ValueUse Out;
  if (auto *L = dyn_cast<LoadInst>(A.I)) {
    Out.Pointee = pointeeOf(L, Records);
    lookAtUses(*L, Records, Out);
  } else if (auto *S = dyn_cast<StoreInst>(A.I)) {
    const Value *V = S->getValueOperand();
    Out.Pointee = pointeeOf(V, Records);
    if (auto *From = dyn_cast<LoadInst>(V); From && !Out.Pointee)
      Out.Pointee = pointeeAt(From->getPointerOperand(), Records);
    if (auto *C = dyn_cast<CallBase>(V); C && !Out.Pointee && C->getCalledFunction()) {
      const DISubprogram *SP = C->getCalledFunction()->getSubprogram();
      if (SP && SP->getType() && SP->getType()->getTypeArray())
        Out.Pointee = declared(SP, 0, SP->getType()->getTypeArray().size());
    }
    if (auto *F = dyn_cast<Function>(V)) {
      Out.Called = true;
      Out.Pointee = F->getSubprogram() ? F->getSubprogram()->getType() : nullptr;
    }
  }
  return Out;
}

const DIType *typeOfValue(const AccessShape &A, const DebugRecords &Records) {
  const Value *V = A.I;
  auto *S = dyn_cast<StoreInst>(A.I);
  if (S)
    V = S->getValueOperand();
  const DIType *T = Records.typeOf(V);
  auto *L = dyn_cast<LoadInst>(V);
  if (!T && S && L)
    T = Records.typeAt(L->getPointerOperand());
  unsigned Seen = 0;
  if (!T && !S && L)
    for (const User *U : L->users()) {
      if (++Seen > MaxValueUses || T)
        break;
      const DISubprogram *SP = L->getFunction()->getSubprogram();
      if (auto *Into = dyn_cast<StoreInst>(U); Into && Into->getValueOperand() == L)
        T = Records.typeAt(Into->getPointerOperand());
      else if (isa<ReturnInst>(U) && SP && SP->getType() && SP->getType()->getTypeArray().size())
        T = SP->getType()->getTypeArray()[0];
    }
  T = TypeNames::strip(T);
  return isa_and_nonnull<DIBasicType>(T) && TypeNames::bytes(T) == A.ElementBytes ? T : nullptr;
}

} // namespace memlode
