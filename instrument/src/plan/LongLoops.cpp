//===- LongLoops.cpp ------------------------------------------------------===//

#include "plan/LongLoops.h"

#include "LlvmCompat.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

namespace {

/// Two stamps cost some 50 cycles; this many iterations take at least 1,000.
constexpr uint64_t FewestIterations = 4096;
/// The most that computing the count may cost, in simple instructions.
constexpr unsigned CountBudget = 6;
/// Marks the result of decidesOnStamps().
constexpr const char *StampMark = "memlode.stamp";

void markAdded(Instruction &I) { I.setMetadata(StampMark, MDNode::get(I.getContext(), {})); }

/// Computes in front of \p L whether it is long; null if it never is, or that costs too much.
Value *isLong(const Loop &L, ScalarEvolution &SE, const TargetTransformInfo &TTI) {
  const SCEV *Back = SE.getBackedgeTakenCount(&L);
  const auto *Most = dyn_cast<SCEVConstant>(SE.getConstantMaxBackedgeTakenCount(&L));
  if (isa<SCEVCouldNotCompute>(Back) || (Most && Most->getAPInt().ult(FewestIterations - 1)) ||
      SE.getTypeSizeInBits(Back->getType()) < 13)
    return nullptr;
  Instruction *Front = L.getLoopPreheader()->getTerminator();
  Expander Expand(SE);
  if (!Expand.isSafeToExpandAt(Back, Front) ||
      Expand.isHighCostExpansion({Back}, const_cast<Loop *>(&L), CountBudget, &TTI, Front))
    return nullptr;
  Value *Count = Expand.expandCodeFor(Back, Back->getType(), Front);
  for (Instruction *I : Expand.getAllInsertedInstructions())
    markAdded(*I);
  IRBuilder<> B(Front);
  Value *Long = B.CreateICmpUGE(Count, ConstantInt::get(Count->getType(), FewestIterations - 1));
  if (auto *I = dyn_cast<Instruction>(Long))
    markAdded(*I);
  return Long;
}

/// Makes a block in front of \p Before that is executed if \p Long.
const BasicBlock *makeBlock(Value *Long, Instruction *Before) {
  BasicBlock *Asks = Before->getParent();
  Instruction *End = SplitBlockAndInsertIfThen(Long, Before, /*Unreachable=*/false);
  markAdded(*Asks->getTerminator());
  return End->getParent();
}

} // namespace

StampBlocks makeStampBlocks(Function &F, const Versions &Sides,
                            const SmallPtrSetImpl<const BasicBlock *> &Repeats,
                            FunctionAnalysisManager &FAM) {
  auto &LI = FAM.getResult<LoopAnalysis>(F);
  auto &SE = FAM.getResult<ScalarEvolutionAnalysis>(F);
  const auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  struct Place {
    Value *Long;
    BasicBlock *Header, *Exit;
  };
  SmallVector<Place, 8> Places;
  for (Loop *L : LI.getLoopsInPreorder()) {
    BasicBlock *Header = L->getHeader(), *Exit = L->getExitBlock();
    const BasicBlock *Front = L->getLoopPreheader();
    if (!Repeats.contains(Header) || !Front || Sides.Switches.contains(Front) || !Exit || Exit->isEHPad() ||
        !isa<BranchInst>(Header->getTerminator()))
      continue;
    if (Value *Long = isLong(*L, SE, TTI))
      Places.push_back({Long, Header, Exit});
  }
  // All are known before the first block changes what the analyses say.
  StampBlocks Made;
  for (const Place &P : Places) {
    BasicBlock *Front = nullptr;
    for (BasicBlock *Pred : predecessors(P.Header))
      Front = Pred == P.Header ? Front : Pred;
    Made.insert(makeBlock(P.Long, Front->getTerminator()));
    Made.insert(makeBlock(P.Long, SplitEdge(P.Header, P.Exit)->getTerminator()));
  }
  return Made;
}

bool decidesOnStamps(const Instruction &I) { return I.hasMetadata(StampMark); }

} // namespace memlode
