//===- UnrecordedPlaces.cpp -----------------------------------------------===//

#include "plan/UnrecordedPlaces.h"

#include "find/CallEffects.h"
#include "find/LibcAccesses.h"
#include "find/QuietCalls.h"
#include "memlode_format.h"
#include "prepare/HiddenCalls.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumUnrecordedSegments, "Segments added to count what is not recorded");

namespace memlode {

namespace {

class PlaceFinder {
public:
  PlaceFinder(Plan &P, const Finder &Accesses, const Allocators &Functions, const SkippedFunctions &Skipped,
              const TargetLibraryInfo &TLI)
      : P(P), Accesses(Accesses), Functions(Functions), Skipped(Skipped), TLI(TLI) {
    for (unsigned I = 0; I < P.Blocks.size(); ++I)
      Order[P.Blocks[I].Block] = I;
  }

  void run() {
    for (unsigned Block = 0; Block < P.Blocks.size(); ++Block)
      for (Instruction &I : *P.Blocks[Block].Block)
        for (const Unrecorded &U : placesOf(I))
          P.Segments[segmentOf(I, Block)].Beside.push_back(U);
  }

private:
  SmallVector<Unrecorded, 1> placesOf(Instruction &I) const {
    SmallVector<Unrecorded, 1> Found;
    for (const Skipped_t &S : Accesses.find(I).Skips)
      Found.push_back({&I, S.Reason, {}});
    if (isa<CallBrInst>(I))
      Found.push_back({&I, MEMLODE_LEFT_OUT_ASSEMBLY_JUMP, {}});
    if (const auto *Call = dyn_cast<CallBase>(&I))
      if (const Function *Callee = Call->getCalledFunction())
        if (const auto Reason = reasonOf(*Call, *Callee))
          Found.push_back({&I, *Reason, GlobalValue::dropLLVMManglingEscape(Callee->getName())});
    return Found;
  }

  /// The reason why the work of \p Callee is not recorded, if there is one. For a function of
  /// another unit it is not known here.
  std::optional<uint8_t> reasonOf(const CallBase &Call, const Function &Callee) const {
    if (const auto Left = Skipped.find(&Callee); Left != Skipped.end())
      return Callee.hasFnAttribute(Attribute::DisableSanitizerInstrumentation)
                 ? std::nullopt
                 : std::optional<uint8_t>(MEMLODE_LEFT_OUT_FUNCTION);
    bool Mismatch;
    const bool IsElsewhere = Callee.isDeclaration() || Callee.hasAvailableExternallyLinkage();
    if (!IsElsewhere || Callee.isIntrinsic() || Callee.getName().starts_with("__memlode_") ||
        Call.doesNotAccessMemory() || Call.onlyAccessesInaccessibleMemory() || isQuiet(Callee.getName()) ||
        HiddenCalls::isOne(Callee) || libraryTransfer(Call, TLI) != Transfer::None ||
        !libraryAccesses(Call).empty() || Functions.find(Call, Mismatch) || !syncsOf(Call).empty())
      return std::nullopt;
    return MEMLODE_LEFT_OUT_CALL;
  }

  /// A segment that is executed as often as \p I of block number \p Block is.
  unsigned segmentOf(Instruction &I, unsigned Block) {
    if (const auto Own = inBlock(Block, I))
      return *Own;
    // Blocks before and behind, between which there is no way out.
    SmallPtrSet<const BasicBlock *, 8> Seen{I.getParent()};
    const BasicBlock *Here = I.getParent();
    while (const BasicBlock *Before = Here->getSinglePredecessor()) {
      const auto At = Order.find(Before);
      if (At == Order.end() || !Before->getSingleSuccessor() || !Seen.insert(Before).second)
        break;
      if (const auto Last = lastOf(At->second))
        return *Last;
      Here = Before;
    }
    return added(I, Block);
  }

  /// The last segment of the block in front of \p I, or the first behind it.
  std::optional<unsigned> inBlock(unsigned Block, const Instruction &I) const {
    std::optional<unsigned> Found;
    const auto *Call = dyn_cast<CallBase>(&I);
    for (const Step &S : P.Blocks[Block].Steps) {
      if (S.Is != Step::What::Segment)
        continue;
      const bool IsBehind = I.comesBefore(P.Segments[S.Segment].first());
      if (IsBehind && (Found || (Call && Call->doesNotReturn())))
        break;
      Found = S.Segment;
      if (IsBehind)
        break;
    }
    return Found;
  }

  std::optional<unsigned> lastOf(unsigned Block) const {
    for (const Step &S : reverse(P.Blocks[Block].Steps))
      if (S.Is == Step::What::Segment)
        return S.Segment;
    return std::nullopt;
  }

  /// Adds a segment without ops in front of \p I.
  unsigned added(Instruction &I, unsigned Block) {
    std::vector<Step> &Steps = P.Blocks[Block].Steps;
    const auto isBefore = [&](const Step &S) {
      return (S.Is == Step::What::Segment ? P.Segments[S.Segment].first() : S.Before)->comesBefore(&I);
    };
    // A reload stands where the segment may: in front of the same instruction.
    const auto stays = [&](const Step &S) {
      return isBefore(S) || (S.Is == Step::What::Reload && S.Before == &I);
    };
    Step Added{Step::What::Segment};
    Added.Segment = P.Segments.size();
    P.Segments.emplace_back();
    P.Segments.back().Here = &I;
    Steps.insert(find_if_not(Steps, stays), Added);
    ++NumUnrecordedSegments;
    return Added.Segment;
  }

  using Skipped_t = memlode::Skipped;

  Plan &P;
  const Finder &Accesses;
  const Allocators &Functions;
  const SkippedFunctions &Skipped;
  const TargetLibraryInfo &TLI;
  DenseMap<const BasicBlock *, unsigned> Order;
};

} // namespace

void findUnrecorded(Plan &P, const Finder &Accesses, const Allocators &Functions,
                    const SkippedFunctions &Skipped, const TargetLibraryInfo &TLI) {
  PlaceFinder(P, Accesses, Functions, Skipped, TLI).run();
}

} // namespace memlode
