//===- ExecutedBefore.cpp -------------------------------------------------===//

#include "plan/ExecutedBefore.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace memlode {

namespace {

/// Bits of all sets together: 32 MiB.
constexpr size_t MostBits = size_t{1} << 28;

} // namespace

std::vector<BitVector> segmentsBehind(const Plan &P) {
  const size_t Count = P.Segments.size();
  if (Count * P.Blocks.size() > MostBits)
    return {};
  DenseMap<const BasicBlock *, unsigned> Order;
  for (unsigned I = 0; I < P.Blocks.size(); ++I)
    Order[P.Blocks[I].Block] = I;

  // A must-analysis: from everything down to what every path agrees on.
  std::vector<BitVector> Before(P.Blocks.size(), BitVector(Count, true));
  std::vector<BitVector> After(P.Blocks.size(), BitVector(Count, true));
  Before.front().reset();
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (unsigned I = 0; I < P.Blocks.size(); ++I) {
      BitVector Now(Count, I != 0);
      for (const BasicBlock *Pred : predecessors(P.Blocks[I].Block)) {
        auto At = Order.find(Pred);
        if (At != Order.end()) // reachable
          Now &= After[At->second];
      }
      Before[I] = Now;
      for (const Step &S : P.Blocks[I].Steps) {
        if (S.Is == Step::What::Segment)
          Now.set(S.Segment);
        else
          Now.reset();
      }
      if (Now != After[I]) {
        After[I] = std::move(Now);
        Changed = true;
      }
    }
  }
  return Before;
}

} // namespace memlode
