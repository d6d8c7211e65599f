//===- CursorFlow.cpp -----------------------------------------------------===//

#include "plan/CursorFlow.h"

#include "memlode_format.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/CFG.h"

#include <algorithm>

using namespace llvm;

namespace memlode {

namespace {

/// Words that may follow a test without another. The last word of a chunk still passes the test.
constexpr unsigned PathWords = MEMLODE_RING_CHUNK_BYTES / MEMLODE_STREAM_WORD_BYTES - 1;
static_assert(MEMLODE_STREAM_MAX_SEGMENT_WORDS + 1 <= PathWords, "a segment must fit behind a test");

/// A number above the length of any path: the next segment has to test.
constexpr unsigned Untested = ~0U;

DenseMap<const BasicBlock *, unsigned> orderOf(const Plan &P) {
  DenseMap<const BasicBlock *, unsigned> Order;
  for (unsigned I = 0; I < P.Blocks.size(); ++I)
    Order[P.Blocks[I].Block] = I;
  return Order;
}

} // namespace

void placeRoomTests(Plan &P) {
  const auto Order = orderOf(P);
  std::vector<unsigned> WordsAtEnd(P.Blocks.size());
  std::vector<char> FreshAtEnd(P.Blocks.size());
  for (unsigned I = 0; I < P.Blocks.size(); ++I) {
    unsigned Words = I == 0 ? Untested : 0;
    bool Fresh = I != 0;
    for (const BasicBlock *Pred : predecessors(P.Blocks[I].Block)) {
      auto At = Order.find(Pred);
      if (At == Order.end()) // unreachable
        continue;
      Words = std::max(Words, At->second < I ? WordsAtEnd[At->second] : Untested);
      Fresh &= At->second < I && FreshAtEnd[At->second];
    }
    for (const Step &S : P.Blocks[I].Steps) {
      if (S.Is == Step::What::Reload)
        Words = Untested;
      if (S.Is == Step::What::Switch)
        Words = 0; // it tests
      Fresh |= S.Is != Step::What::Segment;
      if (S.Is != Step::What::Segment)
        continue;
      Segment &Next = P.Segments[S.Segment];
      if (Words == Untested || Words + Next.words() > PathWords) {
        Next.TestsRoom = true;
        Next.Fresh = Fresh;
        Words = 0;
      }
      Words += Next.words();
      Fresh = false;
    }
    FreshAtEnd[I] = Fresh;
    WordsAtEnd[I] = Words;
  }
}

/// Returns whether words were written that memory does not know of.
static bool isDirtyAfter(const Step &S, bool Before) {
  return S.Is == Step::What::Segment || (S.Is == Step::What::Switch && Before);
}

void dropCleanCommits(Plan &P) {
  const auto Order = orderOf(P);
  std::vector<char> DirtyAtEnd(P.Blocks.size());
  const auto dirtyAtStart = [&](const BlockPlan &B) {
    return any_of(predecessors(B.Block), [&](const BasicBlock *Pred) {
      auto At = Order.find(Pred);
      return At != Order.end() && DirtyAtEnd[At->second];
    });
  };
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (unsigned I = 0; I < P.Blocks.size(); ++I) {
      bool Dirty = dirtyAtStart(P.Blocks[I]);
      for (const Step &S : P.Blocks[I].Steps)
        Dirty = isDirtyAfter(S, Dirty);
      Changed |= Dirty != static_cast<bool>(DirtyAtEnd[I]);
      DirtyAtEnd[I] = Dirty;
    }
  }
  for (BlockPlan &B : P.Blocks) {
    bool Dirty = dirtyAtStart(B);
    erase_if(B.Steps, [&](const Step &S) {
      const bool Clean = S.Is == Step::What::Commit && !Dirty;
      Dirty = isDirtyAfter(S, Dirty);
      return Clean;
    });
  }
}

} // namespace memlode
