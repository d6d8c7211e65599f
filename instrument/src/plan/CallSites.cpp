//===- CallSites.cpp ------------------------------------------------------===//

#include "plan/CallSites.h"

#include "find/CallEffects.h"

#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>
#include <optional>

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumCallSegments, "Segments added to tell calls apart");

namespace memlode {

/// Returns whether \p Call enters a function that a reader may take for recorded, unlike the
/// compiler's own calls.
static bool entersCode(const CallBase &Call) {
  return mayRecord(Call) && !isa<IntrinsicInst>(Call) && !Call.isInlineAsm();
}

Frugal::Frugal(const Module &M, const Allocators &Functions,
               function_ref<const TargetLibraryInfo &(Function &)> TLI) {
  SmallVector<const Function *, 16> Others;
  const auto drop = [&](const Function *F) {
    if (Known.erase(F))
      Others.push_back(F);
  };
  for (const Function &F : M)
    if (!F.isDeclaration())
      Known.insert(&F);
  for (const Function &F : M) {
    if (F.isDeclaration())
      continue;
    const TargetLibraryInfo &Library = TLI(const_cast<Function &>(F));
    const bool Allocates = any_of(instructions(F), [&](const Instruction &I) {
      const auto *Call = dyn_cast<CallBase>(&I);
      bool Mismatch;
      if (!Call || !entersCode(*Call))
        return false;
      const Function *Callee = Call->getCalledFunction();
      return Functions.find(*Call, Mismatch) || !Callee ||
             (Callee->isDeclaration() && libraryName(*Callee, Library).empty());
    });
    if (Allocates)
      drop(&F);
  }
  while (!Others.empty())
    for (const User *U : Others.pop_back_val()->users())
      if (const auto *Call = dyn_cast<CallBase>(U))
        drop(Call->getFunction());
}

bool Frugal::mayAllocate(const CallBase &Call, const TargetLibraryInfo &TLI) const {
  const Function *Callee = Call.getCalledFunction();
  if (!entersCode(Call) || Call.doesNotReturn())
    return false;
  return !Callee || (Callee->isDeclaration() ? libraryName(*Callee, TLI).empty() : !Known.contains(Callee));
}

namespace {

/// Segments of which one was executed last: in order, each once. None: too many to follow.
using Last = std::optional<SmallVector<unsigned, 2>>;
constexpr size_t MostFollowed = 32;

class CallFinder {
public:
  CallFinder(Plan &P, const Frugal &Callees, const TargetLibraryInfo &TLI)
      : P(P), Callees(Callees), TLI(TLI), AtEnd(P.Blocks.size(), Last(std::in_place)) {
    for (unsigned I = 0; I < P.Blocks.size(); ++I)
      Order[P.Blocks[I].Block] = I;
  }

  void run() {
    // A segment that is added takes calls from those before it, so that the next look finds fewer.
    do {
      follow();
      attribute();
    } while (tellApart());
  }

private:
  /// Finds the segments that may have been executed last where each block ends.
  void follow() {
    for (bool Changed = true; Changed;) {
      Changed = false;
      for (unsigned I = 0; I < P.Blocks.size(); ++I) {
        Last Now = atStart(I);
        for (const Step &S : P.Blocks[I].Steps)
          step(S, Now);
        Changed |= Now != AtEnd[I];
        AtEnd[I] = std::move(Now);
      }
    }
  }

  Last atStart(unsigned I) const {
    SmallVector<unsigned, 2> All;
    for (const BasicBlock *Pred : predecessors(P.Blocks[I].Block)) {
      const auto At = Order.find(Pred);
      if (At == Order.end())
        continue;
      const Last &Before = AtEnd[At->second];
      if (!Before)
        return {};
      append_range(All, *Before);
    }
    llvm::sort(All);
    All.erase(std::unique(All.begin(), All.end()), All.end());
    return All.size() > MostFollowed ? Last() : Last(std::move(All));
  }

  void step(const Step &S, Last &Now) const {
    if (S.Is == Step::What::Segment)
      Now = SmallVector<unsigned, 2>{S.Segment};
  }

  /// The call that the cursor is committed for, unless the function has been left before it.
  static const CallBase *callOf(const Step &S) {
    const auto *Call = S.Is == Step::What::Commit ? dyn_cast<CallBase>(S.Before) : nullptr;
    return Call && entersCode(*Call) ? Call : nullptr;
  }

  bool leaves(unsigned Segment) const {
    return any_of(P.Segments[Segment].Ops, [](const Op &O) { return O.Code == MEMLODE_OP_EXIT; });
  }

  void attribute() {
    Unfollowed.clear();
    for (Segment &S : P.Segments)
      S.Calls.clear();
    for (unsigned I = 0; I < P.Blocks.size(); ++I) {
      Last Now = atStart(I);
      for (const Step &S : P.Blocks[I].Steps) {
        step(S, Now);
        const CallBase *Call = callOf(S);
        if (!Call)
          continue;
        if (!Now)
          Unfollowed.insert(Call);
        else
          for (unsigned Before : *Now)
            if (!leaves(Before))
              P.Segments[Before].Calls.push_back({Call, isExact(*Call)});
      }
    }
  }

  /// Adds a segment in front of each call that is taken for another. Returns whether there is any.
  bool tellApart() {
    DenseSet<const CallBase *> Mistaken = Unfollowed;
    for (const Segment &S : P.Segments)
      for (const NextCall &Next : S.Calls)
        if (Callees.mayAllocate(*Next.Call, TLI) &&
            any_of(S.Calls, [&](const NextCall &Other) { return areAlike(*Next.Call, *Other.Call); }))
          Mistaken.insert(Next.Call);
    if (Mistaken.empty())
      return false;
    bool Any = false;
    for (BlockPlan &B : P.Blocks)
      for (unsigned I = 0; I < B.Steps.size(); ++I) {
        const CallBase *Call = callOf(B.Steps[I]);
        if (!Call || !Mistaken.contains(Call) || (I > 0 && isAdded(B.Steps[I - 1])))
          continue;
        Any = true;
        Step Added{Step::What::Segment};
        Added.Segment = P.Segments.size();
        P.Segments.emplace_back();
        P.Segments.back().Here = B.Steps[I].Before;
        B.Steps.insert(B.Steps.begin() + I++, Added);
        ++NumCallSegments;
      }
    return Any;
  }

  /// Returns whether one function could be entered by either, and memory be allocated.
  bool areAlike(const CallBase &A, const CallBase &B) const {
    const Function *Ours = A.getCalledFunction(), *Theirs = B.getCalledFunction();
    return A.getDebugLoc() != B.getDebugLoc() && (Ours == Theirs || !Ours || !Theirs) &&
           Callees.mayAllocate(B, TLI);
  }

  /// A function of this module is entered before the functions it calls, and the C library calls
  /// none.
  bool isExact(const CallBase &Call) const {
    const Function *Callee = Call.getCalledFunction();
    return Callee && (!Callee->isDeclaration() || !libraryName(*Callee, TLI).empty());
  }

  bool isAdded(const Step &S) const {
    return S.Is == Step::What::Segment && P.Segments[S.Segment].Ops.empty();
  }

  Plan &P;
  const Frugal &Callees;
  const TargetLibraryInfo &TLI;
  DenseMap<const BasicBlock *, unsigned> Order;
  std::vector<Last> AtEnd;
  DenseSet<const CallBase *> Unfollowed; ///< calls behind too many segments
};

} // namespace

void findCalls(Plan &P, const Frugal &Callees, const TargetLibraryInfo &TLI) {
  CallFinder(P, Callees, TLI).run();
}

} // namespace memlode
