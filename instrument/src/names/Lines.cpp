//===- Lines.cpp ----------------------------------------------------------===//
#include "names/Lines.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxUsers = 16, MaxUserDepth = 3;
constexpr unsigned MaxOperandDepth = 2;

const DILocation *lineOf(const Value *V) {
  auto *I = dyn_cast_or_null<Instruction>(V);
  const DILocation *L = I ? I->getDebugLoc().get() : nullptr;
  return L && L->getLine() ? L : nullptr;
}

/// A borrowed line should stand in the same source function, when the instruction still knows its own.
bool sameFrame(const DILocation *L, const DILocation *Wanted) {
  return !Wanted || (L->getInlinedAt() == Wanted->getInlinedAt() &&
                     L->getScope()->getSubprogram() == Wanted->getScope()->getSubprogram());
}

} // namespace

Lines::Line Lines::of(const Instruction &I) {
  if (const DILocation *L = lineOf(&I))
    return {L, false};
  DISubprogram *SP = F.getSubprogram();
  if (!SP)
    return {I.getDebugLoc().get(), true};
  if (const DILocation *L = borrowed(I))
    return {L, true};
  findNeighbours();
  if (const DILocation *L = Neighbour.lookup(&I))
    return {L, true};
  unsigned Line = SP->getScopeLine() ? SP->getScopeLine() : SP->getLine();
  return {DILocation::get(F.getContext(), Line, 0, SP), true};
}

/// The line of a value that the access computes with.
const DILocation *Lines::borrowed(const Instruction &I) const {
  const DILocation *Wanted = I.getDebugLoc().get();
  const DILocation *Other = nullptr; // of another frame: better than nothing
  auto consider = [&](const Value *V) {
    const DILocation *L = lineOf(V);
    if (L && !Other)
      Other = L;
    return L && sameFrame(L, Wanted) ? L : nullptr;
  };
  // Nearest first: vectors are put together of what several loads read, by instructions without a line.
  SmallVector<const Value *, 8> Level = {&I}, Next;
  for (unsigned D = 0, Users = 0; D != MaxUserDepth && Users < MaxUsers; ++D) {
    for (const Value *V : Level)
      for (const User *U : V->users()) {
        if (Users++ == MaxUsers)
          break;
        if (const DILocation *L = consider(U))
          return L;
        // Behind a phi, it is one of several values.
        if (!isa<PHINode>(U))
          Next.push_back(U);
      }
    Level.swap(Next);
    Next.clear();
  }
  Level.assign(I.value_op_begin(), I.value_op_end());
  for (unsigned D = 0; D != MaxOperandDepth; ++D) {
    for (const Value *V : Level) {
      // A phi or an argument stands for values made elsewhere, and a call may have made a pointer long ago.
      if (!isa<Instruction>(V) || isa<PHINode>(V) || (isa<CallBase>(V) && !isa<IntrinsicInst>(V)))
        continue;
      if (const DILocation *L = consider(V))
        return L;
      if (!isa<LoadInst>(V))
        Next.append(cast<Instruction>(V)->value_op_begin(), cast<Instruction>(V)->value_op_end());
    }
    Level.swap(Next);
    Next.clear();
  }
  return Wanted ? nullptr : Other;
}

/// One sweep over the function: the nearest line before each unlocated access in its block, else the nearest
/// behind it, else the last one of the blocks before.
void Lines::findNeighbours() {
  if (std::exchange(Searched, true))
    return;
  const DILocation *InFunction = nullptr;
  SmallVector<const Instruction *, 8> Homeless;
  for (const BasicBlock &B : F) {
    const DILocation *InBlock = nullptr;
    SmallVector<const Instruction *, 8> Waiting;
    for (const Instruction &I : B) {
      if (const DILocation *L = lineOf(&I)) {
        for (const Instruction *W : Waiting)
          Neighbour[W] = L;
        Waiting.clear();
        InBlock = InFunction = L;
      } else if (I.mayReadOrWriteMemory()) {
        if (InBlock)
          Neighbour[&I] = InBlock;
        else
          Waiting.push_back(&I);
      }
    }
    for (const Instruction *W : Waiting)
      if (InFunction)
        Neighbour[W] = InFunction;
      else
        Homeless.push_back(W);
  }
  if (InFunction)
    for (const Instruction *W : Homeless)
      Neighbour[W] = InFunction;
}

} // namespace memlode
