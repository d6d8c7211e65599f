//===- Derive.cpp ---------------------------------------------------------===//

#include "Derive.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumDerived, "Addresses derived from another of the segment");

namespace memlode {

namespace {

/// How many earlier addresses are compared by scalar evolution; the search is quadratic in it.
constexpr unsigned ComparedRoots = 12;

struct Known {
  unsigned Op;
  int64_t Offset; ///< of the op's address from the base
};

class Deriver {
public:
  Deriver(Segment &S, const DataLayout &DL, ScalarEvolution &SE) : S(S), DL(DL), SE(SE) {}

  void run() {
    for (unsigned I = 0; I < S.Ops.size(); ++I) {
      if (S.Ops[I].Address)
        address(I);
      if (S.Ops[I].Length)
        length(I);
    }
  }

private:
  /// The value \p V is a constant distance from. Each reference to a thread's own variable makes a value of
  /// its own.
  const Value *baseOf(const Value *V, int64_t &Offset) const {
    APInt Sum(DL.getIndexTypeSizeInBits(V->getType()), 0);
    V = V->stripAndAccumulateConstantOffsets(DL, Sum, /*AllowNonInbounds=*/true);
    Offset = Sum.getSExtValue();
    const auto *II = dyn_cast<IntrinsicInst>(V);
    return II && II->getIntrinsicID() == Intrinsic::threadlocal_address ? II->getArgOperand(0) : V;
  }

  void address(unsigned I) {
    int64_t Offset;
    const Value *Base = baseOf(S.Ops[I].Address, Offset);
    auto [Found, New] = ByBase.try_emplace(Base, Known{I, Offset});
    if (!New) {
      from(I, Found->second.Op, Offset - Found->second.Offset);
      Found->second = {I, Offset};
      return;
    }
    if (!SE.isSCEVable(S.Ops[I].Address->getType()))
      return;
    const SCEV *Evolution = SE.getSCEV(S.Ops[I].Address);
    const SCEV *Object = SE.getPointerBase(Evolution);
    for (const auto &[Root, RootEvolution, RootObject] : reverse(Roots)) {
      if (RootObject != Object)
        continue;
      const auto *Distance = dyn_cast<SCEVConstant>(SE.getMinusSCEV(Evolution, RootEvolution));
      if (!Distance)
        continue;
      from(I, Root, Distance->getAPInt().getSExtValue());
      return;
    }
    if (Roots.size() == ComparedRoots)
      Roots.erase(Roots.begin());
    Roots.push_back({I, Evolution, Object});
  }

  void from(unsigned I, unsigned Earlier, int64_t Delta) {
    S.Ops[I].AddressFrom = I - Earlier;
    S.Ops[I].AddressDelta = Delta;
    ++NumDerived;
  }

  void length(unsigned I) {
    auto [Found, New] = ByLength.try_emplace(S.Ops[I].Length, I);
    if (!New)
      S.Ops[I].LengthFrom = I - Found->second;
    Found->second = I;
  }

  struct Root {
    unsigned Op;
    const SCEV *Evolution;
    const SCEV *Object;
  };

  Segment &S;
  const DataLayout &DL;
  ScalarEvolution &SE;
  DenseMap<const Value *, Known> ByBase;
  DenseMap<const Value *, unsigned> ByLength;
  SmallVector<Root, ComparedRoots> Roots;
};

} // namespace

void derive(Segment &S, const DataLayout &DL, ScalarEvolution &SE) { Deriver(S, DL, SE).run(); }

} // namespace memlode
