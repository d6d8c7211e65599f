//===- CompileCost.cpp ----------------------------------------------------===//

#include "sides/CompileCost.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>

using namespace llvm;

namespace memlode {

namespace {

/// Compile time over that of the same code without us.
constexpr double Most = 3;

/// Smaller functions, and files, are compiled in no time.
constexpr double LargeFunction = 1000;
constexpr double LargeFile = 10000;

/// Some passes of LLVM take the square of it, above all where the code is not well optimised.
constexpr double MostBlocks = 2400;

/// The part of a function's instructions above which tests for room are a large part of the
/// compiled code.
constexpr double ManyCalls = 0.05;

struct Size {
  double Instructions = 0, Calls = 0, Loops = 0, Blocks = 0;

  Size(Function &F, const LoopInfo &LI) : Blocks(F.size()) {
    for (const Loop *L : LI)
      Loops += L->getLoopsInPreorder().size();
    for (const Instruction &I : instructions(F))
      if (!I.isDebugOrPseudoInst()) {
        ++Instructions;
        Calls += isa<CallBase>(I) && !isa<IntrinsicInst>(I);
      }
  }

  double callsPerInstruction() const { return Calls / std::max(1.0, Instructions); }

  /// Predicted compile time with two sides, relative to that of the function with one.
  double ratio() const {
    return 2 + 13 * callsPerInstruction() + 8 * Loops / std::max(1.0, Instructions) +
           std::min(1.0, Loops / 250);
  }

  bool isTooLarge() const { return Instructions >= LargeFunction && (ratio() > Most || Blocks > MostBlocks); }
};

} // namespace

CompileCosts::CompileCosts(ArrayRef<Function *> Functions, FunctionAnalysisManager &FAM) {
  SmallVector<std::pair<const Function *, Size>, 64> Sizes;
  double Instructions = 0, Predicted = 0;
  for (Function *F : Functions) {
    const Size &S = Sizes.emplace_back(F, Size(*F, FAM.getResult<LoopAnalysis>(*F))).second;
    Instructions += S.Instructions;
    Predicted += S.Instructions * (S.isTooLarge() ? Most : S.ratio());
  }
  const bool ManySmall = Instructions >= LargeFile && Predicted > Most * Instructions;
  for (const auto &[F, S] : Sizes)
    if (S.isTooLarge() || (ManySmall && S.ratio() > Most))
      Forms[F] = S.callsPerInstruction() > ManyCalls ? Form::Brief : Form::Single;
}

} // namespace memlode
