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

#include "describe/MovedValues.h"
#include "find/LibcAccesses.h"
#include "memlode_format.h"
#include "names/Fortran.h"
#include "plan/SyncPoints.h"
#include "sides/DormantFunctions.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumRoomTests, "Tests for room");
STATISTIC(NumCommits, "Stores of the cursor to memory");

namespace memlode {

namespace {

class Emitter {
public:
  Emitter(Function &F, const Versions &Sides, bool Briefly, GlobalVariable &Anchors)
      : F(F), M(*F.getParent()), Sides(Sides), Briefly(Briefly), Anchors(Anchors),
        Int64(Type::getInt64Ty(F.getContext())), Pointer(PointerType::getUnqual(F.getContext())) {}

  void run(const Plan &P) {
    IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
    Cursor = B.CreateAlloca(Pointer, nullptr, "memlode.cursor");
    // The dormant side has no cursor to keep in a register.
    for (Instruction *Jump : Sides.SharedJumps)
      at(Jump).CreateStore(ConstantPointerNull::get(cast<PointerType>(Pointer)), Cursor);
    for (const BlockPlan &Block : P.Blocks)
      for (const Step &S : Block.Steps)
        step(P, S);
    DominatorTree DT(F);
    PromoteMemToReg({Cursor}, DT);
    for (Instruction *Load : Reloads)
      RecursivelyDeleteTriviallyDeadInstructions(Load);
    for (const DormantStep &S : P.Dormant)
      whileDormant(*S.Call, P.Segments[S.Segment].Ops.back(), S.Segment);
  }

  void runWithoutCursor(const Plan &P) {
    Places = 512;
    for (const Segment &S : P.Segments) {
      IRBuilder<> B = at(S.first());
      words(B, S, B.CreateThreadLocalAddress(unread()), &S - P.Segments.data());
    }
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
      Reloads.push_back(B.CreateAlignedLoad(Pointer, threadCursor(B), Align(8)));
      B.CreateStore(Reloads.back(), Cursor);
      return;
    }
    case Step::What::Commit: {
      IRBuilder<> B = at(S.Before);
      B.CreateAlignedStore(B.CreateLoad(Pointer, Cursor), threadCursor(B), Align(8));
      ++NumCommits;
      return;
    }
    case Step::What::Switch:
      return changeSides(cast<BranchInst>(S.Before));
    }
  }

  Value *threadCursor(IRBuilder<> &B) {
    auto *Variable = cast<GlobalVariable>(M.getOrInsertGlobal("__memlode_cursor", Pointer));
    Variable->setThreadLocalMode(GlobalValue::InitialExecTLSModel);
    return B.CreateThreadLocalAddress(Variable);
  }

  void segment(const Segment &S, unsigned Index) {
    Instruction *First = S.first();
    if (S.TestsRoom)
      testRoom(First, S.Fresh);
    IRBuilder<> B = at(First);
    Value *Start = B.CreateLoad(Pointer, Cursor);
    const unsigned Count = words(B, S, Start, Index);
    B.CreateStore(slot(B, Start, Count), Cursor);
  }

  /// Stores the words of \p S one after the other; returns their number.
  unsigned words(IRBuilder<> &B, const Segment &S, Value *Start, unsigned Index) {
    unsigned Position = 0;
    store(B, anchor(B, Index), Start, Position);
    for (const Op &O : S.Ops) {
      B.SetInsertPoint(O.Before);
      op(B, O, Start, Position);
    }
    return Position;
  }

  /// Few bytes: threads begin with fresh ones. Behind the last place there is room for the longest vector.
  GlobalVariable *unread() {
    constexpr StringRef Name = "memlode.unread";
    if (GlobalVariable *Made = M.getNamedGlobal(Name))
      return Made;
    Type *Bytes = ArrayType::get(Type::getInt8Ty(F.getContext()), Places * 8 + 4096);
    auto *Made =
        new GlobalVariable(M, Bytes, false, GlobalValue::LinkOnceODRLinkage, Constant::getNullValue(Bytes),
                           Name, nullptr, GlobalValue::InitialExecTLSModel);
    Made->setVisibility(GlobalValue::HiddenVisibility);
    Made->setAlignment(Align(64));
    return Made;
  }

  void testRoom(Instruction *Before, bool Fresh) {
    IRBuilder<> B = at(Before);
    Value *Now = B.CreateLoad(Pointer, Cursor);
    const char *Name = !Fresh ? "__memlode_more" : Sides ? "__memlode_switch" : "__memlode_refill";
    if (Briefly) {
      refill(B, Now, Name);
      return;
    }
    Instruction *Cold = SplitBlockAndInsertIfThen(isFull(B, Now), Before, /*Unreachable=*/false, unlikely());
    B.SetInsertPoint(Cold);
    refill(B, Now, Name);
  }

  /// Puts a test for room in the place of \p Choice:
  ///
  ///   room in the cursor? ─ no ─► less than what says that recording is off? ─ no ─► refill; room
  /// now?
  ///     │ yes                       │ yes                                      ▲      │ yes    │ no
  ///     ▼                           ▼                                          │      ▼        ▼
  ///   recording off? ─ yes ─────────┼──────────────────────────────────────────┘    record   sleep
  ///     │ no                        ▼
  ///     ▼                         sleep
  ///   record
  ///
  /// The bound of the second test is below any address: only a NULL cursor is less, and only while
  /// recording is off.
  ///
  /// At the entry only the cursor is tested: that makes calls cheaper, and a chunk is soon full. In
  /// a loop that is not enough: inner loops that have used up the chunk go on with scratch memory,
  /// and leave some room there.
  void changeSides(BranchInst *Choice) {
    if (Sides.Apart) {
      ReplaceInstWithInst(Choice, BranchInst::Create(Choice->getSuccessor(1)));
      return choose();
    }
    const bool InLoop = Choice->getParent() != &F.getEntryBlock();
    BasicBlock *Sleep = Choice->getSuccessor(0), *Record = Choice->getSuccessor(1);
    const auto block = [&](const char *Name) { return BasicBlock::Create(F.getContext(), Name, &F, Record); };
    BasicBlock *Full = block("memlode.full"), *Ask = block("memlode.ask");
    IRBuilder<> B = at(Choice);
    Value *Now = B.CreateLoad(Pointer, Cursor);
    BasicBlock *HasRoom = InLoop ? block("memlode.room") : Record;
    // An exception searches the landing pads of a function from the front: those of the side that has to be
    // fast are to be there.
    B.CreateCondBr(isFull(B, Now), Full, HasRoom, InLoop || !F.hasPersonalityFn() ? unlikely() : usual());
    const DebugLoc Where = Choice->getDebugLoc();
    Choice->eraseFromParent();
    const auto begin = [&](BasicBlock *At) {
      B.SetInsertPoint(At);
      B.SetCurrentDebugLocation(Where);
    };
    begin(Full);
    B.CreateCondBr(isAsleep(B, Now), Sleep, Ask, usual());
    if (InLoop) {
      begin(HasRoom);
      B.CreateCondBr(B.CreateIsNotNull(loadDormant(B)), Ask, Record, unlikely());
    }
    begin(Ask);
    B.CreateCondBr(isFull(B, refill(B, Now, "__memlode_switch")), Sleep, Record, unlikely());
  }

  /// The same, where each side is a separate function: emits the bodies of the functions that
  /// choose.
  void choose() {
    const auto block = [&](Function *In, const char *Name) {
      return BasicBlock::Create(F.getContext(), Name, In);
    };
    const auto room = [&](IRBuilder<> &B) { return B.CreateAlignedLoad(Pointer, threadCursor(B), Align(8)); };
    BasicBlock *Entry = block(Sides.Front, "entry"), *Full = block(Sides.Front, "full"),
               *Sleep = block(Sides.Front, "sleep"), *Ask = block(Sides.Front, "ask"),
               *Record = block(Sides.Front, "record");
    IRBuilder<> B(Entry);
    Value *Now = room(B);
    B.CreateCondBr(isFull(B, Now), Full, Record, usual());
    B.SetInsertPoint(Full);
    // Sleep stands in front of Ask, so that the code generator makes its jump the conditional one.
    B.CreateCondBr(isAsleep(B, Now), Sleep, Ask, usual());
    jumpTo(*Sides.Apart, *Sleep);
    jumpTo(*Sides.Ask, *Ask);
    jumpTo(F, *Record);

    Entry = block(Sides.Ask, "entry"), Sleep = block(Sides.Ask, "sleep"), Record = block(Sides.Ask, "record");
    B.SetInsertPoint(Entry);
    CallInst *Refill = B.CreateCall(refiller("__memlode_switch"), {room(B)});
    Refill->setCallingConv(CallingConv::PreserveAll);
    B.CreateCondBr(isFull(B, Refill), Sleep, Record);
    jumpTo(*Sides.Apart, *Sleep);
    jumpTo(F, *Record);
    ++NumRoomTests;
  }

  Value *isFull(IRBuilder<> &B, Value *Now) {
    return B.CreateIsNull(B.CreateAnd(B.CreatePtrToInt(Now, Int64), MEMLODE_RING_ROOM_BIT));
  }

  Value *isAsleep(IRBuilder<> &B, Value *Now) {
    return B.CreateICmpULT(B.CreatePtrToInt(Now, Int64), loadDormant(B));
  }

  MDNode *usual() { return MDBuilder(F.getContext()).createLikelyBranchWeights(); }
  MDNode *unlikely() { return MDBuilder(F.getContext()).createUnlikelyBranchWeights(); }

  Value *refill(IRBuilder<> &B, Value *Now, const char *Name) {
    CallInst *Refill = B.CreateCall(refiller(Name), {Now});
    Refill->setCallingConv(CallingConv::PreserveAll);
    B.CreateStore(Refill, Cursor);
    ++NumRoomTests;
    return Refill;
  }

  /// A function of this module that jumps to the recorder's \p Name. A direct call would read the
  /// address from a table into a register, and hoist that out of loops. The code generator also
  /// assumes that a call of a register may throw, so tables of landing pads, which are searched
  /// from the front, would have several times as many entries. Where there is no room for a test
  /// beside each call, the test is made here.
  Function *refiller(StringRef Name) {
    const std::string Local =
        (Briefly ? "memlode.room." : "memlode.") + Name.substr(strlen("__memlode_")).str();
    if (Function *Made = M.getFunction(Local))
      return Made;
    FunctionCallee Callee = M.getOrInsertFunction(Name, Pointer, Pointer);
    auto *Jump = Function::Create(FunctionType::get(Pointer, {Pointer}, false), GlobalValue::InternalLinkage,
                                  Local, M);
    for (Function *Each : {cast<Function>(Callee.getCallee()), Jump}) {
      Each->setCallingConv(CallingConv::PreserveAll);
      Each->addFnAttr(Attribute::NoUnwind);
      Each->addFnAttr(Attribute::Cold);
      // The dynamic linker's lazy binding would change r10, which PreserveAll promises to keep.
      Each->addFnAttr(Attribute::NonLazyBind);
    }
    Jump->addFnAttr("memlode");
    IRBuilder<> B(BasicBlock::Create(F.getContext(), "", Jump));
    if (Briefly) {
      BasicBlock *Full = BasicBlock::Create(F.getContext(), "full", Jump),
                 *Room = BasicBlock::Create(F.getContext(), "room", Jump);
      B.CreateCondBr(isFull(B, Jump->getArg(0)), Full, Room, unlikely());
      B.SetInsertPoint(Room);
      B.CreateRet(Jump->getArg(0));
      B.SetInsertPoint(Full);
    }
    CallInst *Call = B.CreateCall(Callee, {Jump->getArg(0)});
    Call->setCallingConv(CallingConv::PreserveAll);
    Call->setTailCallKind(CallInst::TCK_MustTail);
    B.CreateRet(Call);
    return Jump;
  }

  /// Emits code that records that \p Call makes or ends an object, unless no segment is to be
  /// recorded. The test is made in front of the call: if nothing is recorded, the call stays as it
  /// was, perhaps in tail position, and its arguments need not be kept.
  void whileDormant(CallBase &Call, const Op &O, unsigned Index) {
    const bool Ends = O.Code == MEMLODE_OP_FREE || O.Code == MEMLODE_OP_UNMAP;
    if (auto *Invoke = dyn_cast<InvokeInst>(&Call); Invoke && !Ends) {
      BasicBlock *Behind = Invoke->getNormalDest();
      if (!Behind->getSinglePredecessor())
        Behind = SplitEdge(Invoke->getParent(), Behind);
      Instruction *First = &*Behind->getFirstInsertionPt();
      IRBuilder<> B(First);
      B.SetCurrentDebugLocation(Call.getDebugLoc());
      return say(SplitBlockAndInsertIfThen(isWanted(B), First, /*Unreachable=*/false, unlikely()), Call, O,
                 Index);
    }
    IRBuilder<> B(&Call);
    if (Ends)
      return say(SplitBlockAndInsertIfThen(isWanted(B), &Call, /*Unreachable=*/false, unlikely()), Call, O,
                 Index);
    Instruction *Told, *Untold;
    SplitBlockAndInsertIfThenElse(isWanted(B), &Call, &Told, &Untold, unlikely());
    auto *Copy = cast<CallBase>(Call.clone());
    Copy->insertInto(Told->getParent(), Told->getIterator());
    BasicBlock *Joined = Call.getParent();
    if (!Call.use_empty()) {
      PHINode *Result = PHINode::Create(Call.getType(), 2, "", Joined->begin());
      Call.replaceAllUsesWith(Result);
      Joint[&Call] = Result;
      Result->addIncoming(Copy, Told->getParent());
      Result->addIncoming(&Call, Untold->getParent());
      Result->setDebugLoc(Call.getDebugLoc());
    }
    Call.moveBefore(*Untold->getParent(), Untold->getIterator());
    cast<CallInst>(Copy)->setTailCall(false);
    say(Told, *Copy, O, Index, &Call);
  }

  Value *isWanted(IRBuilder<> &B) {
    constexpr uint32_t Never = MEMLODE_OFF_NOBODY | MEMLODE_OFF_OVER;
    return B.CreateIsNull(B.CreateAnd(loadDormant(B), Never));
  }

  /// Calls the recorder in front of \p Before. The \p Planned word is \p Call.
  void say(Instruction *Before, CallBase &Call, const Op &O, unsigned Index, Value *Planned = nullptr) {
    IRBuilder<> B(Before);
    B.SetCurrentDebugLocation(Call.getDebugLoc());
    SmallVector<Value *, 4> Arguments = {B.CreatePtrToInt(anchor(B, Index), Int64)};
    for (Word W : O.Words) {
      for (Value **Operand : {&W.A, &W.B})
        if (Planned && *Operand == Planned)
          *Operand = &Call;
        else if (Value *Result = Joint.lookup(*Operand))
          *Operand = Result;
      Value *Computed = word(B, W);
      Arguments.push_back(Computed->getType()->isPointerTy() ? B.CreatePtrToInt(Computed, Int64) : Computed);
    }
    const SmallVector<Type *, 4> Types(Arguments.size(), Int64);
    FunctionCallee Callee = M.getOrInsertFunction(("__memlode_dormant_" + Twine(Arguments.size() - 1)).str(),
                                                  FunctionType::get(B.getVoidTy(), Types, false));
    auto *Said = cast<Function>(Callee.getCallee());
    Said->addFnAttr(Attribute::NoUnwind);
    Said->addFnAttr(Attribute::Cold);
    B.CreateCall(Callee, Arguments);
  }

  Constant *anchor(IRBuilder<> &B, unsigned Index) {
    Constant *Position[] = {B.getInt64(0), B.getInt64(Index)};
    return ConstantExpr::getInBoundsGetElementPtr(Anchors.getValueType(), &Anchors, Position);
  }

  Value *slot(IRBuilder<> &B, Value *Start, unsigned Position) {
    return B.CreateConstInBoundsGEP1_64(Int64, Start, Position % Places);
  }

  void store(IRBuilder<> &B, Value *What, Value *Start, unsigned &Position) {
    B.CreateAlignedStore(What, slot(B, Start, Position), Align(8));
    ++Position;
  }

  void op(IRBuilder<> &B, const Op &O, Value *Start, unsigned &Position) {
    if (O.addressIsWord())
      store(B, O.Address, Start, Position);
    if (O.Length && O.LengthFrom == 0)
      store(B, integer(B, O.Length), Start, Position);
    for (const Word &W : O.Words) {
      if (W.Computed == Word::How::FirstStamp) {
        // The thread may act on what its maker does from now on before it records anything itself.
        B.CreateAlignedStore(B.getInt32(1), M.getOrInsertGlobal("__memlode_others", B.getInt32Ty()), Align(4))
            ->setAtomic(AtomicOrdering::Monotonic);
        store(B, readCounter(B, /*Waits=*/false), Start, Position);
        continue;
      }
      if (W.Computed == Word::How::Stamp || W.Computed == Word::How::LooseStamp) {
        Value *Stamp = emitStamp(O.Before, W.Computed == Word::How::Stamp);
        B.SetInsertPoint(O.Before);
        store(B, Stamp, Start, Position);
        continue;
      }
      if (Value *What = moved(B, W)) {
        B.CreateAlignedStore(What, slot(B, Start, Position), Align(8));
        Position += W.count();
        continue;
      }
      if (W.Computed != Word::How::Lanes) {
        store(B, word(B, W), Start, Position);
        continue;
      }
      // A lane that is masked out may hold anything, but always the same thing.
      B.CreateAlignedStore(B.CreateFreeze(W.A), slot(B, Start, Position), Align(8));
      Position += W.count();
    }
  }

  /// Returns the stored value in its form in memory, or null.
  Value *moved(IRBuilder<> &B, const Word &W) {
    switch (W.Computed) {
    case Word::How::Moved:
      return W.A;
    case Word::How::Before:
      return valueBefore(B, *cast<Instruction>(W.A));
    case Word::How::After:
      return valueAfter(B, *cast<Instruction>(W.A));
    default:
      return nullptr;
    }
  }

  /// Reads the pointer at \p From if \p Condition holds; NULL otherwise, when there may be no
  /// memory. Splits the block.
  Value *storedIf(IRBuilder<> &B, Value *Condition, Value *From) {
    Instruction *Behind = &*B.GetInsertPoint();
    BasicBlock *Front = B.GetInsertBlock();
    Instruction *Holds = SplitBlockAndInsertIfThen(Condition, Behind, /*Unreachable=*/false);
    Value *Read = IRBuilder<>(Holds).CreateLoad(Pointer, From);
    B.SetInsertPoint(Behind);
    PHINode *Found = B.CreatePHI(Pointer, 2);
    Found->addIncoming(ConstantPointerNull::get(cast<PointerType>(Pointer)), Front);
    Found->addIncoming(Read, Holds->getParent());
    return Found;
  }

  Value *integer(IRBuilder<> &B, Value *V) {
    return V->getType()->isPointerTy() ? V : B.CreateZExtOrTrunc(V, Int64);
  }

  Value *bits(IRBuilder<> &B, Value *Mask) {
    const unsigned Lanes = cast<FixedVectorType>(Mask->getType())->getNumElements();
    return B.CreateZExtOrTrunc(B.CreateBitCast(Mask, B.getIntNTy(Lanes)), Int64);
  }

  Value *word(IRBuilder<> &B, const Word &W) {
    Constant *Null = ConstantPointerNull::get(PointerType::getUnqual(F.getContext()));
    switch (W.Computed) {
    case Word::How::Value:
      return integer(B, W.A);
    case Word::How::Mask:
      return bits(B, W.A);
    case Word::How::MaskBytes:
      return B.CreateMul(B.CreateUnaryIntrinsic(Intrinsic::ctpop, bits(B, W.A)), B.getInt64(W.Bytes));
    case Word::How::Frame:
      return B.CreateIntrinsic(Intrinsic::addressofreturnaddress, {Pointer}, {});
    case Word::How::Product:
      return B.CreateMul(integer(B, W.A), integer(B, W.B));
    case Word::How::Mapped:
      return B.CreateSelect(B.CreateICmpEQ(W.A, ConstantExpr::getIntToPtr(B.getInt64(-1), Pointer)), Null,
                            W.A);
    case Word::How::Stored:
      return B.CreateLoad(Pointer, W.A);
    case Word::How::StoredIfZero:
      return storedIf(B, B.CreateIsNull(W.B), W.A);
    case Word::How::Text:
      return B.CreateSelect(B.CreateIsNotNull(W.B), Null, W.A);
    case Word::How::TextBytes:
      return stringBytes(B, W.B, W.A);
    case Word::How::Described:
      return B.CreateCall(describedBytes(M), W.A);
    case Word::How::Lanes:
    case Word::How::Moved:
    case Word::How::Before:
    case Word::How::After:
    case Word::How::Stamp:
    case Word::How::LooseStamp:
    case Word::How::FirstStamp:
      break;
    }
    llvm_unreachable("some are stored at once, and a stamp is made where it is stored");
  }

  Function &F;
  Module &M;
  const Versions &Sides;
  const bool Briefly;
  GlobalVariable &Anchors;
  Type *Int64;
  Type *Pointer;
  AllocaInst *Cursor = nullptr;
  unsigned Places = UINT_MAX; ///< words of a segment from here on lie over its first ones
  SmallVector<Instruction *, 16> Reloads;
  DenseMap<Value *, Value *> Joint; ///< what calls return that stand twice
};

} // namespace

void emitStream(Function &F, const Versions &Sides, const Plan &P, Image &Into, bool Briefly) {
  Emitter(F, Sides, Briefly, *Into.anchors(F, P.Segments)).run(P);
}

void emitWords(Function &F, const Plan &P, Image &Into) {
  Emitter(F, Versions(), /*Briefly=*/false, *Into.anchors(F, P.Segments)).runWithoutCursor(P);
}

} // namespace memlode
