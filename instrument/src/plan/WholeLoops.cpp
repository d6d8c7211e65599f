//===- WholeLoops.cpp -----------------------------------------------------===//

#include "plan/WholeLoops.h"

#include "LlvmCompat.h"
#include "prepare/HiddenCalls.h"

#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumRepeats, "Loops recorded at once");

namespace memlode {

namespace {

/// The most that computing the count and the first addresses may cost, in simple instructions.
constexpr unsigned ExpansionBudget = 6;

/// An address in a loop: where it begins, and how far it goes each time.
struct Course {
  const SCEV *Start = nullptr;
  int64_t Step = 0;
};

std::optional<Course> courseOf(Value *Address, const Loop &L, ScalarEvolution &SE) {
  if (!SE.isSCEVable(Address->getType()))
    return std::nullopt;
  const SCEV *Evolution = SE.getSCEV(Address);
  if (SE.isLoopInvariant(Evolution, &L))
    return Course{Evolution, 0};
  const auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Evolution);
  if (!Recurrence || Recurrence->getLoop() != &L || !Recurrence->isAffine())
    return std::nullopt;
  const auto *Step = dyn_cast<SCEVConstant>(Recurrence->getStepRecurrence(SE));
  if (!Step || Step->getAPInt().getSignificantBits() > 64)
    return std::nullopt;
  return Course{Recurrence->getStart(), Step->getAPInt().getSExtValue()};
}

/// Returns whether \p I neither records anything, other than by a plain access, nor leaves the
/// loop. Atomic accesses that threads share are recorded one by one.
bool isPlain(const Instruction &I) {
  const auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return !I.isAtomic() && !mayBecomeCall(I);
  if (const auto *II = dyn_cast<IntrinsicInst>(Call))
    return !mayBecomeCall(*II) && (II->isAssumeLikeIntrinsic() || !II->mayHaveSideEffects());
  const Function *Callee = Call->getCalledFunction();
  return Callee && Callee->getName().starts_with("__memlode_"); // the yardstick's
}

/// A loop of one block that is left at its end alone, after a number of iterations that is known when it
/// begins.
bool isSimple(const Loop &L, ScalarEvolution &SE) {
  if (L.getNumBlocks() != 1 || L.getExitingBlock() != L.getHeader() || L.getHeader()->hasAddressTaken() ||
      !all_of(*L.getHeader(), isPlain))
    return false;
  const SCEV *Back = SE.getBackedgeTakenCount(&L);
  return !isa<SCEVCouldNotCompute>(Back) && SE.getTypeSizeInBits(Back->getType()) <= 64;
}

/// Makes the code in front of one loop.
class Hoister {
public:
  Hoister(const Loop &L, ScalarEvolution &SE, const TargetTransformInfo &TTI)
      : L(L), SE(SE), TTI(TTI), Front(L.getLoopPreheader()->getTerminator()), Expand(SE) {}

  /// Returns the ops that replace those of \p S; none if it is not worth while.
  std::vector<Op> hoist(const Segment &S) {
    const SCEV *Count = count();
    SmallVector<const SCEV *, 8> Wanted{Count};
    SmallVector<Course, 8> Courses;
    for (const Op &O : S.Ops) {
      const auto C = O.Code == MEMLODE_OP_ACCESS ? courseOf(O.Address, L, SE) : std::nullopt;
      if (!C)
        return {};
      Courses.push_back(*C);
      Wanted.push_back(C->Start);
    }
    if (any_of(Wanted, [&](const SCEV *E) { return !Expand.isSafeToExpandAt(E, Front); }) ||
        Expand.isHighCostExpansion(Wanted, const_cast<Loop *>(&L), ExpansionBudget * Wanted.size(), &TTI,
                                   Front))
      return {};

    std::vector<Op> Ops(1);
    Ops[0].Code = MEMLODE_OP_REPEAT;
    Ops[0].Before = Front;
    Ops[0].Words = {{Word::How::Value, Expand.expandCodeFor(Count, Count->getType(), Front)}};
    for (unsigned I = 0; I < Courses.size(); ++I) {
      Op O = S.Ops[I];
      O.Code = MEMLODE_OP_STRIDE;
      O.Before = Front;
      O.Step = Courses[I].Step;
      if (!derive(O, I, Courses))
        O.Address = Expand.expandCodeFor(Courses[I].Start, O.Address->getType(), Front);
      Ops.push_back(std::move(O));
    }
    return Ops;
  }

private:
  /// Iterations, as 64 bits: one more than the edge back is taken.
  const SCEV *count() {
    Type *Int64 = Type::getInt64Ty(Front->getContext());
    const SCEV *Back = SE.getTruncateOrZeroExtend(SE.getBackedgeTakenCount(&L), Int64);
    return SE.getAddExpr(Back, SE.getOne(Int64));
  }

  /// Returns whether the course of \p O follows from an earlier course at a constant distance.
  bool derive(Op &O, unsigned Index, ArrayRef<Course> Courses) {
    for (unsigned I = Index; I-- > 0;) {
      if (Courses[I].Step != Courses[Index].Step)
        continue;
      const auto *Distance = dyn_cast<SCEVConstant>(SE.getMinusSCEV(Courses[Index].Start, Courses[I].Start));
      if (!Distance)
        continue;
      O.AddressFrom = Index - I;
      O.AddressDelta = Distance->getAPInt().getSExtValue();
      return true;
    }
    return false;
  }

  const Loop &L;
  ScalarEvolution &SE;
  const TargetTransformInfo &TTI;
  Instruction *Front;
  Expander Expand;
};

} // namespace

RepeatedLoops findRepeats(const Finder &Accesses, DominatorTree &DT, LoopInfo &LI, ScalarEvolution &SE) {
  RepeatedLoops Found;
  for (Loop *L : LI.getLoopsInPreorder()) {
    BasicBlock &Header = *L->getHeader();
    if (!isSimple(*L, SE))
      continue;
    bool Fits = true, Any = false;
    for (Instruction &I : Header)
      for (const Access &A : Accesses.find(I).Accesses) {
        Any = true;
        Fits &= A.Is == Access::Shape::Plain && courseOf(A.Pointer, *L, SE);
      }
    if (Fits && Any &&
        (L->getLoopPreheader() || InsertPreheaderForLoop(L, &DT, &LI, nullptr, /*PreserveLCSSA=*/false)))
      Found.insert(&Header);
  }
  return Found;
}

void hoistRepeats(Plan &P, const LoopInfo &LI, ScalarEvolution &SE, const TargetTransformInfo &TTI) {
  DenseMap<const BasicBlock *, BlockPlan *> PlanOf;
  for (BlockPlan &B : P.Blocks)
    PlanOf[B.Block] = &B;
  for (BlockPlan &Here : P.Blocks) {
    const Loop *L = LI.getLoopFor(Here.Block);
    if (!L || Here.Steps.size() != 1 || Here.Steps[0].Is != Step::What::Segment || !L->getLoopPreheader() ||
        L->getHeader() != Here.Block || !isSimple(*L, SE))
      continue;
    BlockPlan *Front = PlanOf.lookup(L->getLoopPreheader());
    const auto isSwitch = [](const Step &S) { return S.Is == Step::What::Switch; };
    if (!Front || any_of(Front->Steps, isSwitch))
      continue;
    Segment &S = P.Segments[Here.Steps[0].Segment];
    if (S.words() > MEMLODE_STREAM_MAX_SEGMENT_WORDS)
      continue;
    std::vector<Op> Ops = Hoister(*L, SE, TTI).hoist(S);
    if (Ops.empty())
      continue;
    S.Ops = std::move(Ops);
    Front->Steps.push_back(Here.Steps[0]);
    Here.Steps.clear();
    ++NumRepeats;
  }
}

} // namespace memlode
