//===- AddressDependence.cpp ----------------------------------------------===//

#include "describe/AddressDependence.h"

#include "memlode_format.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace memlode {

namespace {

/// The origins of a value.
enum : unsigned {
  Varies = 1,  ///< an index, or steps
  Hashed = 2,  ///< arithmetic that does more than count
  Fetched = 4, ///< a load from a fixed place, or from one that the caller named: a variable, a member
  Loaded = 8,  ///< a load from a place that varies
  Chased = 16
};

/// The way in which a value comes from its sources.
enum class Way {
  Given, ///< it has none
  Same,  ///< by steps and choices
  Hash,
  Load ///< from the memory that its source names
};

/// Arithmetic that aligns a pointer keeps it almost where it was, as does the loop bound of the
/// remainder of a vectorised loop.
bool isAlignment(const BinaryOperator &B) {
  const auto *Mask = dyn_cast<ConstantInt>(B.getOperand(1));
  return B.getOpcode() == Instruction::And && Mask &&
         (Mask->getValue().isNegatedPowerOf2() || Mask->getValue().ult(64));
}

Way wayOfBinary(const BinaryOperator &B) {
  switch (B.getOpcode()) {
  case Instruction::Add:
  case Instruction::Sub:
  case Instruction::Mul:
  case Instruction::Shl:
    return Way::Same;
  case Instruction::Or:
    return cast<PossiblyDisjointInst>(B).isDisjoint() ? Way::Same : Way::Hash;
  default:
    return isAlignment(B) ? Way::Same : Way::Hash;
  }
}

Way wayOfIntrinsic(const IntrinsicInst &II) {
  switch (II.getIntrinsicID()) {
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_expandload:
    return Way::Load;
  default:
    break;
  }
  if (II.mayReadOrWriteMemory())
    return Way::Given;
  const bool Steps = isa<MinMaxIntrinsic, WithOverflowInst, SaturatingInst>(II);
  return Steps || II.getType()->isPtrOrPtrVectorTy() ? Way::Same : Way::Hash;
}

Way wayOf(const Value *V) {
  if (isa<Argument>(V))
    return Way::Same;
  if (isa<LoadInst, AtomicRMWInst, AtomicCmpXchgInst>(V))
    return Way::Load;
  if (isa<PHINode, SelectInst, GetElementPtrInst, FreezeInst, CmpInst, ExtractElementInst, InsertElementInst,
          ShuffleVectorInst, ExtractValueInst, InsertValueInst>(V))
    return Way::Same;
  if (isa<CastInst>(V))
    return isa<FPToSIInst, FPToUIInst>(V) ? Way::Hash : Way::Same;
  if (const auto *B = dyn_cast<BinaryOperator>(V))
    return wayOfBinary(*B);
  if (const auto *II = dyn_cast<IntrinsicInst>(V))
    return wayOfIntrinsic(*II);
  return isa<UnaryOperator>(V) ? Way::Hash : Way::Given;
}

/// The memory that a load reads.
const Value *addressOfLoad(const Instruction &I) {
  if (const auto *L = dyn_cast<LoadInst>(&I))
    return L->getPointerOperand();
  if (const auto *R = dyn_cast<AtomicRMWInst>(&I))
    return R->getPointerOperand();
  if (const auto *X = dyn_cast<AtomicCmpXchgInst>(&I))
    return X->getPointerOperand();
  return cast<IntrinsicInst>(I).getArgOperand(0);
}

/// In a recurrence, a factor does more than count.
bool multiplies(const Value *V) {
  const auto *B = dyn_cast<BinaryOperator>(V);
  return B && (B->getOpcode() == Instruction::Mul || B->getOpcode() == Instruction::Shl);
}

bool isPointer(const Value *V) { return V->getType()->isPtrOrPtrVectorTy(); }

} // namespace

Dependence::Dependence(const Function &F) {
  for (const Instruction &I : instructions(F)) {
    if (const auto *Slot = dyn_cast<AllocaInst>(&I); Slot && isAllocaPromotable(Slot))
      Slots.try_emplace(Slot);
    if (const auto *Call = dyn_cast<CallBase>(&I); Call && Call->getCalledFunction() == &F)
      SelfCalls.push_back(Call);
  }
  if (!Slots.empty())
    readSlots(F);
}

void Dependence::readSlots(const Function &F) {
  for (const BasicBlock &B : F) {
    DenseMap<const Value *, const Value *> Now;
    for (const Instruction &I : B) {
      if (const auto *S = dyn_cast<StoreInst>(&I)) {
        if (auto Slot = Slots.find(S->getPointerOperand()); Slot != Slots.end()) {
          Slot->second.push_back(S->getValueOperand());
          Now[Slot->first] = S->getValueOperand();
        }
      } else if (const auto *L = dyn_cast<LoadInst>(&I)) {
        if (auto Known = Now.find(L->getPointerOperand()); Known != Now.end())
          StoredBefore[L] = Known->second;
      }
    }
  }
}

unsigned Dependence::flagsOf(const Value *Pointer) {
  // The slot of a variable is where it is, whatever is in it.
  if (!isa<Instruction, Argument>(Pointer) || isa<AllocaInst>(Pointer))
    return 0;
  if (!Nodes.contains(Pointer))
    follow(Pointer);
  const unsigned Facts = Nodes.find(Pointer)->second.Facts;
  if (Facts & Chased)
    return MEMLODE_FLAG_LOADED_ADDRESS | MEMLODE_FLAG_CHASED;
  // A table found in a member does not make its index a loaded one.
  if (Facts & Loaded || ((Facts & Fetched) && !(Facts & (Varies | Hashed))))
    return MEMLODE_FLAG_LOADED_ADDRESS;
  return Facts & Hashed ? MEMLODE_FLAG_COMPUTED_ADDRESS : 0;
}

/// Tarjan's search for strongly connected components (Depth-first search and linear graph algorithms, 1972),
/// without recursion: chains of values are as long as functions.
void Dependence::follow(const Value *V) {
  open(V);
  while (!Path.empty()) {
    if (Path.back().Left.empty()) {
      close();
      continue;
    }
    const Value *Next = Path.back().Left.pop_back_val();
    const auto Known = Nodes.find(Next);
    if (Known == Nodes.end()) {
      open(Next);
    } else if (!Known->second.Settled) {
      Node &Top = Nodes.find(Path.back().V)->second;
      Top.Lowest = std::min(Top.Lowest, Known->second.Number);
    }
  }
}

void Dependence::open(const Value *V) {
  const unsigned Number = Nodes.size();
  Nodes.try_emplace(V, Node{Number, Number});
  Unsettled.push_back(V);
  Path.push_back({V, sources(V)});
}

void Dependence::close() {
  const Value *V = Path.pop_back_val().V;
  const Node Done = Nodes.find(V)->second;
  if (Done.Lowest == Done.Number) {
    size_t Kept = Unsettled.size() - 1;
    while (Unsettled[Kept] != V)
      --Kept;
    settle(ArrayRef<const Value *>(Unsettled).drop_front(Kept));
    Unsettled.truncate(Kept);
  }
  if (!Path.empty()) {
    Node &Above = Nodes.find(Path.back().V)->second;
    Above.Lowest = std::min(Above.Lowest, Done.Lowest);
  }
}

void Dependence::settle(ArrayRef<const Value *> Cycle) {
  const bool Recurs = Cycle.size() > 1;
  bool Loads = false;
  unsigned Sum = Recurs ? Varies : 0;
  for (const Value *V : Cycle) {
    unsigned Facts = 0;
    for (const Value *Source : sources(V))
      Facts |= Nodes.find(Source)->second.Facts; // of those in the cycle, nothing yet
    const Way How = wayOf(V);
    if (How == Way::Load && !Slots.contains(addressOfLoad(*cast<Instruction>(V)))) {
      Loads = true;
      Facts = Facts & (Varies | Hashed | Loaded | Chased) ? Loaded | Varies : Fetched;
    }
    if (How == Way::Hash || (Recurs && multiplies(V)))
      Facts |= Hashed;
    if ((How == Way::Given || isa<Argument>(V)) && !isPointer(V))
      Facts |= Varies;
    Sum |= Facts;
  }
  if (Recurs && Loads)
    Sum = Chased | Varies;
  for (const Value *V : Cycle) {
    Node &N = Nodes.find(V)->second;
    N.Facts = Sum;
    N.Settled = true;
  }
}

SmallVector<const Value *, 4> Dependence::sources(const Value *V) const {
  SmallVector<const Value *, 4> Found;
  const auto add = [&Found](const Value *Source) {
    if (isa<Instruction, Argument>(Source))
      Found.push_back(Source);
  };
  if (const auto *A = dyn_cast<Argument>(V)) {
    for (const CallBase *Call : SelfCalls)
      if (A->getArgNo() < Call->arg_size())
        add(Call->getArgOperand(A->getArgNo()));
    return Found;
  }
  if (const auto Slot = Slots.find(V); Slot != Slots.end()) {
    for_each(Slot->second, add);
    return Found;
  }
  const auto *I = cast<Instruction>(V);
  switch (wayOf(V)) {
  case Way::Given:
    break;
  case Way::Load:
    if (const auto Known = StoredBefore.find(I); Known != StoredBefore.end())
      add(Known->second);
    else
      add(addressOfLoad(*I));
    break;
  case Way::Same:
  case Way::Hash:
    for_each(I->operand_values(), add);
    break;
  }
  return Found;
}

} // namespace memlode
