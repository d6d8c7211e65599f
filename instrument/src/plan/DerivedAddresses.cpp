//===- DerivedAddresses.cpp -----------------------------------------------===//

#include "plan/DerivedAddresses.h"

#include "plan/ExecutedBefore.h"
#include "prepare/HiddenCalls.h"

#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumDerived, "Addresses derived from another of the segment");
STATISTIC(NumDerivedAcross, "Addresses derived from another segment's");

namespace memlode {

namespace {

/// The number of earlier addresses of an object that are compared by scalar evolution: the search is
/// quadratic in it.
constexpr unsigned ComparedRoots = 12;

/// An address that is a word of the stream.
struct Root {
  unsigned Segment;
  unsigned Op;
  unsigned Word;  ///< of the segment, behind its header
  int64_t Offset; ///< from the base it is filed under
  const SCEV *Evolution;
  const Loop *Inside;
};

class Deriver {
public:
  Deriver(Plan &P, const DataLayout &DL, ScalarEvolution &SE, const LoopInfo &Loops)
      : P(P), DL(DL), SE(SE), Loops(Loops), Behind(segmentsBehind(P)) {}

  void run() {
    for (unsigned I = 0; I < P.Blocks.size(); ++I) {
      Here = Behind.empty() ? BitVector(P.Segments.size()) : Behind[I];
      Inside = Loops.getLoopFor(P.Blocks[I].Block);
      for (const Step &S : P.Blocks[I].Steps) {
        if (S.Is != Step::What::Segment) {
          Here.reset();
          continue;
        }
        const std::vector<Op> &Ops = P.Segments[S.Segment].Ops;
        if (Ops.empty() || Ops.front().Code == MEMLODE_OP_REPEAT)
          continue; // a loop has been derived, and may be split on its way into the trace
        segment(S.Segment);
        if (!Behind.empty())
          Here.set(S.Segment);
      }
    }
  }

private:
  void segment(unsigned Index) {
    Current = Index;
    Lengths.clear();
    unsigned Word = 0;
    std::vector<Op> &Ops = P.Segments[Index].Ops;
    for (unsigned I = 0; I < Ops.size(); ++I) {
      if (Ops[I].Address)
        address(I, Word);
      if (Ops[I].Length)
        length(I);
      Word += Ops[I].words();
    }
  }

  /// The value \p V is a constant distance from. Each reference to a thread's own variable makes a value of
  /// its own.
  const Value *baseOf(const Value *V, int64_t &Offset) const {
    APInt Sum(DL.getIndexTypeSizeInBits(V->getType()), 0);
    V = V->stripAndAccumulateConstantOffsets(DL, Sum, /*AllowNonInbounds=*/true);
    Offset = Sum.getSExtValue();
    const GlobalVariable *Own = threadLocalOf(V);
    return Own ? Own : V;
  }

  void address(unsigned I, unsigned Word) {
    Op &O = P.Segments[Current].Ops[I];
    int64_t Offset;
    SmallVectorImpl<Root> &OfBase = ByBase[baseOf(O.Address, Offset)];
    for (const Root &R : reverse(OfBase))
      if (from(O, I, R, Offset - R.Offset))
        return;
    Root New{Current, I, Word, Offset, nullptr, Inside};
    if (SE.isSCEVable(O.Address->getType())) {
      New.Evolution = SE.getSCEV(O.Address);
      SmallVectorImpl<Root> &OfObject = ByObject[SE.getPointerBase(New.Evolution)];
      unsigned Compared = 0;
      for (const Root &R : reverse(OfObject)) {
        // Elsewhere the same recurrence may be another iteration's.
        if (R.Inside != Inside || !usable(O, R))
          continue;
        if (++Compared > ComparedRoots)
          break;
        const auto *Distance = dyn_cast<SCEVConstant>(SE.getMinusSCEV(New.Evolution, R.Evolution));
        if (Distance && from(O, I, R, Distance->getAPInt().getSExtValue()))
          return;
      }
      OfObject.push_back(New);
    }
    OfBase.push_back(New);
  }

  bool usable(const Op &O, const Root &R) const {
    return R.Segment == Current || (O.Code == MEMLODE_OP_ACCESS && Here.test(R.Segment));
  }

  bool from(Op &O, unsigned I, const Root &R, int64_t Distance) {
    if (!usable(O, R))
      return false;
    O.AddressDelta = Distance;
    if (R.Segment == Current) {
      O.AddressFrom = I - R.Op;
      ++NumDerived;
    } else {
      O.FromSegment = Current - R.Segment;
      O.FromWord = R.Word;
      ++NumDerivedAcross;
    }
    return true;
  }

  void length(unsigned I) {
    Op &O = P.Segments[Current].Ops[I];
    auto [Found, New] = Lengths.try_emplace(O.Length, I);
    if (!New)
      O.LengthFrom = I - Found->second;
    Found->second = I;
  }

  Plan &P;
  const DataLayout &DL;
  ScalarEvolution &SE;
  const LoopInfo &Loops;
  const std::vector<BitVector> Behind;

  BitVector Here; ///< segments that are surely executed before the current one
  const Loop *Inside = nullptr;
  unsigned Current = 0;
  DenseMap<const Value *, SmallVector<Root, 2>> ByBase;
  DenseMap<const SCEV *, SmallVector<Root, 4>> ByObject;
  DenseMap<const Value *, unsigned> Lengths;
};

} // namespace

void derive(Plan &P, const DataLayout &DL, ScalarEvolution &SE, const LoopInfo &Loops) {
  Deriver(P, DL, SE, Loops).run();
}

} // namespace memlode
