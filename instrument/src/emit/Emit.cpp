//===- Emit.cpp -----------------------------------------------------------===//
//
// A segment of n words in a loop, as the code generator sees it:
//
//   test  cursor, room_bit          only if CursorFlow.h asks for it
//   je    cold                      calls __memlode_refill
//   store anchor, 0(cursor)
//   store address, 8(cursor)        … in front of each access
//   add   8 * n, cursor
//
//===----------------------------------------------------------------------===//

#include "emit/Emit.h"

#include "emit/Cursor.h"
#include "emit/DormantEvents.h"
#include "emit/Words.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumCommits, "Stores of the cursor to memory");

namespace memlode {

namespace {

/// Writes a function's plan, with the cursor in a register.
class Emitter {
public:
  Emitter(Function &F, const Versions &Sides, bool Briefly, GlobalVariable &Anchors)
      : F(F), Sides(Sides), Pointer(PointerType::getUnqual(F.getContext())), Here(F, Sides, Briefly),
        Stored(F, Anchors, /*Places=*/UINT_MAX), Calls(F, Stored) {}

  void run(const Plan &P) {
    // The dormant side has no cursor to keep in a register.
    for (Instruction *Jump : Sides.SharedJumps)
      at(Jump).CreateStore(ConstantPointerNull::get(cast<PointerType>(Pointer)), Here.variable());
    for (const BlockPlan &Block : P.Blocks)
      for (const Step &S : Block.Steps)
        step(P, S);
    DominatorTree DT(F);
    PromoteMemToReg({Here.variable()}, DT);
    for (Instruction *Load : Reloads)
      RecursivelyDeleteTriviallyDeadInstructions(Load);
    for (const ReportStep &S : P.Reports) {
      IRBuilder<> B(S.Call);
      S.Call->setArgOperand(S.Argument, Stored.anchor(B, S.Segment));
    }
    for (const DormantStep &S : P.Dormant)
      Calls.whileDormant(*S.Call, P.Segments[S.Segment].Ops.back(), S.Segment);
  }

private:
  /// A builder in front of \p I with the same source line.
  static IRBuilder<> at(Instruction *I) { return IRBuilder<>(I); }

  void step(const Plan &P, const Step &S) {
    switch (S.Is) {
    case Step::What::Segment:
      return segment(P.Segments[S.Segment], S.Segment);
    case Step::What::Reload: {
      IRBuilder<> B = at(S.Before);
      Reloads.push_back(B.CreateAlignedLoad(Pointer, Here.threadCursor(B), Align(8)));
      B.CreateStore(Reloads.back(), Here.variable());
      return;
    }
    case Step::What::Commit: {
      IRBuilder<> B = at(S.Before);
      B.CreateAlignedStore(B.CreateLoad(Pointer, Here.variable()), Here.threadCursor(B), Align(8));
      ++NumCommits;
      return;
    }
    case Step::What::Switch:
      return Here.changeSides(cast<BranchInst>(S.Before));
    }
  }

  void segment(const Segment &S, unsigned Index) {
    Instruction *First = S.first();
    if (S.TestsRoom)
      Here.testRoom(First, S.Fresh);
    IRBuilder<> B = at(First);
    Value *Start = B.CreateLoad(Pointer, Here.variable());
    const unsigned Count = Stored.words(B, S, Start, Index);
    B.CreateStore(Stored.slot(B, Start, Count), Here.variable());
  }

  Function &F;
  const Versions &Sides;
  Type *Pointer;
  Cursor Here;
  Words Stored;
  DormantEvents Calls;
  SmallVector<Instruction *, 16> Reloads;
};

} // namespace

void emitStream(Function &F, const Versions &Sides, const Plan &P, Image &Into, bool Briefly) {
  Emitter(F, Sides, Briefly, *Into.anchors(F, P.Segments)).run(P);
}

void emitWords(Function &F, const Plan &P, Image &Into) {
  Words Stored(F, *Into.anchors(F, P.Segments), /*Places=*/512);
  for (const BlockPlan &Block : P.Blocks)
    for (const Step &Each : Block.Steps) {
      if (Each.Is != Step::What::Segment)
        continue;
      const Segment &S = P.Segments[Each.Segment];
      IRBuilder<> B(S.first());
      Stored.words(B, S, B.CreateThreadLocalAddress(Stored.unread()), Each.Segment);
    }
}

} // namespace memlode
