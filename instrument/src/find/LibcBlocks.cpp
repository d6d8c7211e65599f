//===- LibcBlocks.cpp -----------------------------------------------------===//

#include "find/LibcBlocks.h"

#include "find/ByName.h"
#include "find/LibcAccesses.h"
#include "memlode_format.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace memlode {

namespace {

enum class Makes {
  One,     ///< a block
  Resized, ///< a block, in the place of one that may have been there
  Several, ///< a block that leads to others
  End,     ///< nothing: it ends them
  Nothing,
  Closed ///< what was a stream becomes a block
};

struct BlockRow {
  const char *Names; ///< separated by spaces
  const char *Types;
  const char *Report;
  const char *Words;
  Makes What;
};

const BlockRow BlockRows[] = {
#include "find/LibcBlocks.def"
};

const StringMap<const BlockRow *> &blockRows() {
  static const StringMap<const BlockRow *> Found = byName(BlockRows);
  return Found;
}

bool isOf(const Type *T, char Letter) {
  switch (Letter) {
  case 'v':
    return T->isVoidTy();
  case 'p':
    return T->isPointerTy() && T->getPointerAddressSpace() == 0;
  default:
    return T->isIntegerTy() && T->getIntegerBitWidth() <= 64;
  }
}

bool isCalledAs(const CallBase &Call, StringRef Types) {
  const bool IsOpen = Types.consume_back("*");
  if (!isOf(Call.getType(), Types.front()) ||
      (IsOpen ? Call.arg_size() < Types.size() - 1 : Call.arg_size() != Types.size() - 1))
    return false;
  for (unsigned At = 1; At < Types.size(); ++At)
    if (!isOf(Call.getArgOperand(At - 1)->getType(), Types[At]))
      return false;
  return true;
}

/// The row of the function that \p Call calls, if that is another unit's and is called as libc's is.
const BlockRow *rowOf(const CallBase &Call) {
  const Function *Callee = Call.getCalledFunction();
  // The body of an inline function of a header is not the program's, either.
  const bool IsElsewhere = Callee && (Callee->isDeclaration() || Callee->hasAvailableExternallyLinkage());
  if (!IsElsewhere || Call.isMustTailCall() || isa<CallBrInst>(Call))
    return nullptr;
  const BlockRow *Found = blockRows().lookup(GlobalValue::dropLLVMManglingEscape(Callee->getName()));
  return Found && isCalledAs(Call, Found->Types) ? Found : nullptr;
}

constexpr unsigned WordBytes = 8;

/// Writes the calls beside one of a function of libc.
class Reporter {
public:
  Reporter(CallBase &Call, const BlockRow &R)
      : Call(Call), R(R), M(*Call.getModule()), Front(&Call), Behind(behind(Call)),
        Null(ConstantPointerNull::get(PointerType::getUnqual(Call.getContext()))) {
    const DebugLoc Line = line(Call);
    Front.SetCurrentDebugLocation(Line);
    Behind.SetCurrentDebugLocation(Line);
  }

  CallBase &run(unsigned Anchors, Value *&Place) {
    IRBuilder<> &B = R.What == Makes::End ? Front : Behind;
    SmallVector<Value *, 8> Arguments;
    if (R.What == Makes::Closed) {
      Arguments = {ask("__memlode_block_closing", Front.getPtrTy(), {ownDefinition(Call), argument(0)})};
    } else {
      Arguments = {ownDefinition(Call)};
      Arguments.append(Anchors, Null);
      for (StringRef Words = R.Words; !Words.empty();)
        Arguments.push_back(word(B, Words));
      if (Value *First = Arguments[LibcBlocks::FirstAnchor + Anchors]; First != &Call)
        Place = First;
    }
    return *call(B, ("__memlode_block_" + StringRef(R.Report)).str(), B.getVoidTy(), Arguments);
  }

private:
  /// The line of the program: libc's headers have some of the functions as inline ones that call others.
  static DebugLoc line(const CallBase &Call) {
    const DILocation *Line = Call.getDebugLoc();
    while (Line && Line->getInlinedAt() && handsOutBlocks(Line->getScope()->getSubprogram()->getName()))
      Line = Line->getInlinedAt();
    return DebugLoc(Line);
  }

  static Instruction *behind(CallBase &Call) {
    auto *Invoke = dyn_cast<InvokeInst>(&Call);
    if (!Invoke)
      return Call.getNextNode();
    BasicBlock *Next = Invoke->getNormalDest();
    if (!Next->getSinglePredecessor())
      Next = SplitEdge(Invoke->getParent(), Next);
    return &*Next->getFirstInsertionPt();
  }

  Value *argument(unsigned Position) { return Call.getArgOperand(Position); }

  Value *word(IRBuilder<> &B, StringRef &Words) {
    const char Kind = Words.front();
    Words = Words.drop_front();
    if (Kind == '-')
      return Null;
    if (Kind == '<' || Kind == '>') {
      Value *At = argument(Words.front() - '0');
      Words = Words.drop_front();
      return Kind == '<' ? ask("__memlode_extent_word", Front.getInt64Ty(), {At})
                         : B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), At, WordBytes);
    }
    Value *Given = Kind == 'r' ? &Call : argument(Kind - '0');
    return Given->getType()->isIntegerTy() ? B.CreateSExtOrTrunc(Given, B.getInt64Ty()) : Given;
  }

  /// Calls the recorder in front.
  Value *ask(StringRef Name, Type *Result, ArrayRef<Value *> Arguments) {
    return call(Front, Name, Result, Arguments);
  }

  CallInst *call(IRBuilder<> &B, StringRef Name, Type *Result, ArrayRef<Value *> Arguments) {
    SmallVector<Type *, 8> Types;
    for (const Value *V : Arguments)
      Types.push_back(V->getType());
    FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(Result, Types, false));
    cast<Function>(Callee.getCallee())->addFnAttr(Attribute::NoUnwind);
    return B.CreateCall(Callee, Arguments);
  }

  CallBase &Call;
  const BlockRow &R;
  Module &M;
  IRBuilder<> Front, Behind;
  Constant *Null;
};

uint8_t codeOf(Makes What) {
  switch (What) {
  case Makes::One:
  case Makes::Several:
    return MEMLODE_OP_ALLOC;
  case Makes::Resized:
    return MEMLODE_OP_REALLOC;
  case Makes::End:
    return MEMLODE_OP_FREE;
  case Makes::Nothing:
  case Makes::Closed:
    break;
  }
  llvm_unreachable("nothing is recorded of it");
}

} // namespace

bool BlockReport::makes() const { return Code != MEMLODE_OP_FREE; }

void LibcBlocks::report(CallBase &Call) {
  const BlockRow &R = *rowOf(Call);
  const unsigned Anchors = R.What == Makes::Several                              ? 2
                           : R.What == Makes::Nothing || R.What == Makes::Closed ? 0
                                                                                 : 1;
  Value *Place = nullptr;
  CallBase &Added = Reporter(Call, R).run(Anchors, Place);
  if (Anchors != 0)
    Known.try_emplace(&Added, BlockReport{&Call, Place, codeOf(R.What), Anchors});
}

void LibcBlocks::open(Module &M, ArrayRef<Function *> Functions, FunctionAnalysisManager &FAM) {
  if (none_of(M, [](const Function &F) { return handsOutBlocks(F.getName()); }))
    return;
  for (Function *F : Functions) {
    SmallVector<CallBase *, 8> Calls;
    for (Instruction &I : instructions(*F))
      if (auto *Call = dyn_cast<CallBase>(&I); Call && rowOf(*Call))
        Calls.push_back(Call);
    for (CallBase *Call : Calls)
      report(*Call);
    if (!Calls.empty())
      FAM.invalidate(*F, PreservedAnalyses::none());
  }
}

bool handsOutBlocks(StringRef Name) {
  return blockRows().contains(GlobalValue::dropLLVMManglingEscape(Name));
}

} // namespace memlode
