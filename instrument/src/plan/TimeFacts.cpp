//===- TimeFacts.cpp ------------------------------------------------------===//

#include "plan/TimeFacts.h"

#include "LlvmCompat.h"
#include "memlode_format.h"
#include "plan/LongLoops.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

#include <cmath>

using namespace llvm;

namespace memlode {

namespace {

/// The number of rounds in which counts flow from block to block: loops without a record are rarely nested.
constexpr unsigned Rounds = 12;
/// The number of iterations that is assumed at most for a loop of unknown length without a record.
constexpr double MostIterations = 1e6;

bool isAccess(const Op &O) {
  switch (O.Code) {
  case MEMLODE_OP_ACCESS:
  case MEMLODE_OP_STRIDE:
  case MEMLODE_OP_RANGE:
  case MEMLODE_OP_MASKED:
  case MEMLODE_OP_GATHER:
    return true;
  default:
    return false;
  }
}

/// About how many instructions of the machine \p I becomes.
double instructionsOf(const Instruction &I, const TargetTransformInfo &Target) {
  if (isa<PHINode, AllocaInst>(I) || I.isDebugOrPseudoInst() || decidesOnStamps(I))
    return 0;
  if (const auto *Branch = dyn_cast<BranchInst>(&I); Branch && Branch->isUnconditional())
    return 0; // most become none: what they lead to follows
  if (const auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(I)) {
    if (const auto *Asm = dyn_cast<InlineAsm>(Call->getCalledOperand())) {
      SmallVector<StringRef, 4> Lines;
      Asm->collectAsmStrs(Lines);
      return static_cast<double>(count_if(Lines, [](StringRef Line) { return !Line.trim().empty(); }));
    }
    return 1 + Call->arg_size();
  }
  const InstructionCost Cost = Target.getInstructionCost(&I, TargetTransformInfo::TCK_CodeSize);
  return Cost.isValid() ? static_cast<double>(valueOf(Cost)) : 1;
}

class Counter {
public:
  Counter(Plan &P, const Execution &How) : P(P), How(How) {
    for (BlockPlan &B : P.Blocks)
      PlanOf[B.Block] = &B;
  }

  void run() {
    // What reaches the end of a block uncounted has to be known before what follows it is counted.
    for (const BlockPlan &B : P.Blocks)
      Own[B.Block] = uncounted(B);
    for (unsigned Round = 0; Round != Rounds; ++Round)
      for (const BlockPlan &B : P.Blocks)
        Left[B.Block] = isSilent(B) ? loops(*B.Block, Own[B.Block] + before(*B.Block)) : Own[B.Block];
    for (BlockPlan &B : P.Blocks)
      count(B);
  }

private:
  /// Returns whether \p B has no segment to which its instructions could be added.
  static bool isSilent(const BlockPlan &B) {
    return none_of(B.Steps, [](const Step &S) { return S.Is == Step::What::Segment; });
  }

  double frequency(const BasicBlock &B) const {
    return static_cast<double>(std::max<uint64_t>(How.Frequency.getBlockFreq(&B).getFrequency(), 1));
  }

  /// The part of its executions in which \p B is left for itself.
  double repeats(const BasicBlock &B) const {
    if (!is_contained(successors(&B), &B))
      return 0;
    const Loop *L = How.Loops.getLoopFor(&B);
    if (L && L->getHeader() == &B)
      if (const unsigned Iterations = How.SE.getSmallConstantTripCount(L))
        return (Iterations - 1.0) / Iterations;
    const BranchProbability Again = How.Branches.getEdgeProbability(&B, &B);
    return static_cast<double>(Again.getNumerator()) / Again.getDenominator();
  }

  /// Returns the count that a silent block leaves behind when it ends, if \p Each is the count of
  /// one iteration.
  double loops(const BasicBlock &B, double Each) const {
    return std::min(Each / std::max(1 - repeats(B), 1 / MostIterations), Each * MostIterations);
  }

  /// Returns the count that comes from silent blocks in front of \p B, for each time that it is executed.
  double before(const BasicBlock &B) const {
    double Sum = 0;
    SmallPtrSet<const BasicBlock *, 4> Seen;
    for (const BasicBlock *From : predecessors(&B)) {
      const BlockPlan *Planned = PlanOf.lookup(From);
      if (From == &B || !Planned || !isSilent(*Planned) || !Seen.insert(From).second)
        continue;
      const BranchProbability Way = How.Branches.getEdgeProbability(From, &B);
      const double Taken = static_cast<double>(Way.getNumerator()) / Way.getDenominator();
      Sum += Left.lookup(From) * std::min(1.0, Taken * frequency(*From) / frequency(B));
    }
    return Sum;
  }

  /// Instructions of a silent block; of another, nothing is left.
  double uncounted(const BlockPlan &B) const {
    double Sum = 0;
    if (isSilent(B))
      for (const Instruction &I : *B.Block)
        Sum += instructionsOf(I, How.Target);
    return Sum;
  }

  void count(BlockPlan &B) {
    if (isSilent(B))
      return;
    double Pending = before(*B.Block);
    Segment *Open = nullptr;
    auto Next = B.Block->begin();
    const auto goTo = [&](const Instruction *Before) {
      for (; Next != B.Block->end() && &*Next != Before; ++Next)
        Pending += instructionsOf(*Next, How.Target);
    };
    const auto take = [&Pending] {
      const double Whole = std::round(Pending);
      Pending -= Whole;
      return static_cast<unsigned>(std::min(std::max(Whole, 0.0), 1e9));
    };
    for (const Step &S : B.Steps) {
      if (S.Is != Step::What::Segment)
        continue;
      if (Open) {
        goTo(P.Segments[S.Segment].Ops.front().Before);
        Open->Rest = take();
      }
      Open = &P.Segments[S.Segment];
      for (Op &O : Open->Ops) {
        if (!isAccess(O))
          continue;
        goTo(O.Before);
        // Of what an instruction does twice, the second access has none.
        if (Next != B.Block->end() && &*Next == O.Of)
          Pending += instructionsOf(*Next++, How.Target);
        O.Instructions = take();
      }
    }
    goTo(nullptr);
    if (Open)
      Open->Rest = take();
  }

  Plan &P;
  const Execution &How;
  DenseMap<const BasicBlock *, BlockPlan *> PlanOf;
  DenseMap<const BasicBlock *, double> Own, Left;
};

constexpr unsigned MostGroups = 4, MostFeeds = 8, MostValues = 64, MostAhead = 16;

/// Finds the loads on which values of a function depend, as far back as the accesses that loaded
/// them.
class Feeder {
public:
  Feeder(const SmallPtrSetImpl<const Instruction *> &Loads, const LoopInfo &Loops, const DominatorTree &Tree)
      : Loads(Loads), Loops(Loops), Tree(Tree) {}

  /// Returns the loads on which \p V depends where \p At uses it.
  Feeds of(const Value *V, const Instruction &At) {
    Seen.clear();
    Found.clear();
    Calls = false;
    User = &At;
    all(V);
    return Found;
  }

  /// Returns whether the last value also depends on the result of a call.
  bool metACall() const { return Calls; }

private:
  using Group = Feeds::value_type;

  void add(Group G) {
    if (!G.empty() && Found.size() < MostGroups && !is_contained(Found, G))
      Found.push_back(std::move(G));
  }

  /// Adds a group for each load, and for each choice, on which \p V depends.
  void all(const Value *V) {
    const auto *I = dyn_cast<Instruction>(V);
    if (!I || Seen.size() > MostValues || !Seen.insert(I).second)
      return;
    if (Loads.contains(I))
      return add({{I, false}});
    Calls |= isCall(*I);
    if (isa<PHINode, SelectInst>(I)) {
      Group Choices;
      SmallPtrSet<const Instruction *, 16> Met;
      any(I, Choices, Met, nullptr);
      add(std::move(Choices));
      if (const auto *S = dyn_cast<SelectInst>(I))
        all(S->getCondition());
      return;
    }
    if (passes(*I))
      for (const Value *Operand : I->operand_values())
        all(Operand);
  }

  /// The loops whose back edges a value passed on its way to a phi at their beginning.
  struct Crossed {
    const Loop *Ended;
    const Crossed *Before;
  };

  /// Returns whether \p Load is executed in this iteration of a loop, before its value of an iteration before
  /// is used.
  bool isEarlier(const Instruction &Load, const Crossed *Ends) const {
    for (; Ends; Ends = Ends->Before)
      if (Ends->Ended->contains(&Load) && Ends->Ended->contains(User) && Tree.dominates(&Load, User))
        return true;
    return false;
  }

  /// Adds to \p Choices the loads on which \p V, which came over the back edges \p Ends, may
  /// depend.
  void any(const Value *V, Group &Choices, SmallPtrSetImpl<const Instruction *> &Met, const Crossed *Ends) {
    const auto *I = dyn_cast<Instruction>(V);
    if (!I || Choices.size() == MostFeeds || Met.size() > MostValues || !Met.insert(I).second)
      return;
    Calls |= isCall(*I) && !Loads.contains(I);
    if (Loads.contains(I)) {
      Choices.push_back({I, isEarlier(*I, Ends)});
    } else if (const auto *S = dyn_cast<SelectInst>(I)) {
      any(S->getTrueValue(), Choices, Met, Ends);
      any(S->getFalseValue(), Choices, Met, Ends);
    } else if (const auto *P = dyn_cast<PHINode>(I)) {
      const Loop *Around = Loops.getLoopFor(P->getParent());
      const bool Begins = Around && Around->getHeader() == P->getParent();
      const Crossed End = {Around, Ends};
      for (unsigned From = 0; From != P->getNumIncomingValues(); ++From) {
        const bool Ended = Begins && Around->contains(P->getIncomingBlock(From));
        any(P->getIncomingValue(From), Choices, Met, Ended ? &End : Ends);
      }
    } else if (passes(*I)) {
      for (const Value *Operand : I->operand_values())
        any(Operand, Choices, Met, Ends);
    }
  }

  static bool isCall(const Instruction &I) { return isa<CallBase>(I) && !isa<IntrinsicInst>(I); }

  /// Returns whether \p I makes its value of its operands and nothing else.
  static bool passes(const Instruction &I) {
    if (isa<IntrinsicInst>(I))
      return !I.mayReadOrWriteMemory();
    return !I.mayReadOrWriteMemory() && !isa<CallBase, AllocaInst>(I) && !I.isTerminator();
  }

  const SmallPtrSetImpl<const Instruction *> &Loads;
  const LoopInfo &Loops;
  const DominatorTree &Tree;
  const Instruction *User = nullptr;
  SmallPtrSet<const Instruction *, 32> Seen;
  Feeds Found;
  bool Calls = false;
};

/// The branches between an access and the accesses that may come next.
class Ahead {
public:
  Ahead(const Plan &P, Feeder &Back) : Back(Back) {
    for (const Segment &S : P.Segments)
      for (const Op &O : S.Ops)
        if (isAccess(O) && O.Of)
          Accessing.insert(O.Of);
  }

  /// Adds to \p O the loads that the branches behind it wait for.
  void look(Op &O) {
    SmallVector<const BasicBlock *, MostAhead> Blocks;
    walk(O, std::next(O.Of->getIterator()), *O.Of->getParent(), Blocks);
    for (unsigned Next = 0; Next != Blocks.size(); ++Next)
      walk(O, Blocks[Next]->begin(), *Blocks[Next], Blocks);
    O.BranchFeeds.resize(std::min<size_t>(O.BranchFeeds.size(), MostGroups));
  }

private:
  /// Goes through \p B up to the next access; adds the blocks behind it to \p Blocks.
  void walk(Op &O, BasicBlock::const_iterator From, const BasicBlock &B,
            SmallVectorImpl<const BasicBlock *> &Blocks) {
    for (const Instruction &I : make_range(From, B.end())) {
      if (Accessing.contains(&I))
        return;
      if (const auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(I) && !Call->isInlineAsm()) {
        // Where it goes inside, or behind its return, is decided by what the other function does.
        O.BranchesElsewhere = true;
        return;
      }
      if (isa<ReturnInst, ResumeInst>(I))
        O.BranchesElsewhere = true;
      else if (const auto *Branch = dyn_cast<BranchInst>(&I); Branch && Branch->isConditional())
        decides(O, Branch->getCondition(), I);
      else if (const auto *Switch = dyn_cast<SwitchInst>(&I))
        decides(O, Switch->getCondition(), I);
      else if (const auto *Jump = dyn_cast<IndirectBrInst>(&I))
        decides(O, Jump->getAddress(), I);
    }
    for (const BasicBlock *Next : successors(&B)) {
      if (is_contained(Blocks, Next))
        continue;
      if (Blocks.size() == MostAhead)
        O.BranchesElsewhere = true;
      else
        Blocks.push_back(Next);
    }
  }

  void decides(Op &O, const Value *Condition, const Instruction &Branch) {
    for (auto &Group : Back.of(Condition, Branch))
      if (!is_contained(O.BranchFeeds, Group))
        O.BranchFeeds.push_back(std::move(Group));
    O.BranchesElsewhere |= Back.metACall();
  }

  Feeder &Back;
  SmallPtrSet<const Instruction *, 32> Accessing;
};

/// Returns whether the value of \p I is read from memory.
bool loads(const Instruction &I) {
  return isa<LoadInst, AtomicRMWInst, AtomicCmpXchgInst>(I) ||
         (isa<IntrinsicInst>(I) && !I.getType()->isVoidTy());
}

/// Returns the value that an access stores, or null.
const Value *storedBy(const Instruction &I) {
  if (const auto *S = dyn_cast<StoreInst>(&I))
    return S->getValueOperand();
  if (const auto *R = dyn_cast<AtomicRMWInst>(&I))
    return R->getValOperand();
  if (const auto *X = dyn_cast<AtomicCmpXchgInst>(&I))
    return X->getNewValOperand();
  return nullptr;
}

} // namespace

void countInstructions(Plan &P, const Execution &How) { Counter(P, How).run(); }

void findFeeds(Plan &P, const LoopInfo &Loops, const DominatorTree &Tree) {
  SmallPtrSet<const Instruction *, 32> Loads;
  for (const Segment &S : P.Segments)
    for (const Op &O : S.Ops)
      if (isAccess(O) && O.Of && loads(*O.Of))
        Loads.insert(O.Of);
  Feeder Back(Loads, Loops, Tree);
  Ahead Branches(P, Back);
  for (Segment &S : P.Segments)
    for (Op &O : S.Ops) {
      if (!isAccess(O) || !O.Of)
        continue;
      if (O.Address)
        O.AddressFeeds = Back.of(O.Address, *O.Of);
      else if (O.Code == MEMLODE_OP_GATHER && O.Words.front().Computed == Word::How::Lanes)
        O.AddressFeeds = Back.of(O.Words.front().A, *O.Of);
      if (const Value *Stored = storedBy(*O.Of))
        O.DataFeeds = Back.of(Stored, *O.Of);
      Branches.look(O);
    }
}

} // namespace memlode
