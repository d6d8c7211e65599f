//===- Segments.cpp -------------------------------------------------------===//

#include "plan/Segments.h"

#include "describe/MovedValues.h"
#include "plan/SyncPoints.h"
#include "plan/TailCalls.h"

#include "memlode_format.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumAccesses, "Accesses recorded");
STATISTIC(NumValues, "Values recorded");
STATISTIC(NumSkipped, "Accesses that cannot be recorded");
STATISTIC(NumFiltered, "Events left out by the filter");
STATISTIC(NumSegments, "Segments");
STATISTIC(NumAllocations, "Calls that make or end an object");
STATISTIC(NumStamps, "Time stamps");
STATISTIC(NumEarlyExits, "Calls in tail position kept there");

namespace memlode {

/// Returns whether there is an object behind a call of \p A.
static bool makes(const Allocator &A) {
  return A.Does == Allocator::Act::Allocate || A.Does == Allocator::Act::Resize;
}

Plan Planner::plan() {
  for (BasicBlock *B : ReversePostOrderTraversal<Function *>(&F))
    if (!Sides.Dormant.contains(B))
      block(*B);
  for (auto [Call, Copy] : Sides.Calls)
    whileDormant(*Call, *Copy);
  NumSegments += Made.Segments.size();
  return std::move(Made);
}

/// Plans the record of control being in \p B at all. Moves \p First behind slots of the frame.
void Planner::begin(BasicBlock &B, Instruction *&First) {
  if (&B == &F.getEntryBlock()) {
    while (isa<AllocaInst>(First) && cast<AllocaInst>(First)->isStaticAlloca())
      First = First->getNextNode();
    reload(First);
  }
  if (&B == (Sides ? Sides.Body : &F.getEntryBlock())) {
    if (isForkedBody(F))
      syncOfBody(First, 0, MEMLODE_SYNC_WAIT);
    else if (isParallelBody(F))
      stamp(First, Word::How::Stamp);
    if (Frames)
      frame(MEMLODE_OP_ENTER, First);
    for (Access A : Sites.parameters()) {
      A.Behind = First;
      access(A);
    }
  } else if (B.isLandingPad() || Sides.Wakes.contains(&B)) {
    reload(First);
    if (Frames || B.isLandingPad())
      frame(MEMLODE_OP_RESUME, First);
  } else if (BasicBlock *Pred = B.getSinglePredecessor()) {
    if (auto *Invoke = dyn_cast<InvokeInst>(Pred->getTerminator()))
      returned(*Invoke, First);
  }
}

void Planner::block(BasicBlock &B) {
  Made.Blocks.push_back({&B, {}});
  Steps = &Made.Blocks.back().Steps;
  Open = false;
  Instruction *First = &*B.getFirstInsertionPt();
  begin(B, First);
  if (Stamped.contains(&B))
    sync(B.getTerminator(), Constant::getNullValue(PointerType::getUnqual(B.getContext())),
         MEMLODE_SYNC_RELEASE);
  if (Sides.Switches.contains(&B)) {
    // Nothing else is in it that could record.
    Steps->push_back({Step::What::Switch, 0, B.getTerminator()});
    return;
  }

  Instruction *Exit = exitPoint(B);
  bool ExitsEarly = Exit && isa<CallInst>(Exit);
  if (ExitsEarly && !cast<CallInst>(Exit)->isMustTailCall()) {
    // An object's birth can be recorded only after the call, and so can what was waited for or looked at.
    bool Mismatch;
    const Allocator *A = Functions.find(*cast<CallInst>(Exit), Mismatch);
    if ((A && makes(*A)) || waitsForOthers(*cast<CallInst>(Exit)) ||
        !syncsOf(*cast<CallInst>(Exit)).empty() || acquires(*Exit) || isKnownBehind(*cast<CallInst>(Exit))) {
      ExitsEarly = false;
      Exit = B.getTerminator();
    }
  }

  for (Instruction &I : make_range(First->getIterator(), B.end())) {
    if (&I == Exit) {
      if (ExitsEarly) {
        ++NumEarlyExits;
        opsOf(I);
        handsOver(I);
      }
      exit(&I);
      return;
    }
    instruction(I);
  }
}

void Planner::instruction(Instruction &I) {
  const bool Hands = handsOver(I);
  // What becomes a call without being one is recorded as a whole when it is done: what it read must stand
  // beside it, and is known then.
  Behind = Hands && !isa<CallBase>(I);
  Value *Released = releasedBy(I);
  if (!Released)
    Released = Awaited.releasedBy(I);
  if (Released)
    sync(&I, Released, MEMLODE_SYNC_RELEASE);
  if (!Behind)
    opsOf(I);
  if (isa<ResumeInst>(I))
    exit(&I);
  if (!Hands)
    return;
  commit(&I);
  // Behind an invoke the plan goes on in its successors.
  if (!I.isTerminator())
    returned(I, I.getNextNode());
  if (Behind)
    opsOf(I);
  Behind = false;
}

/// Returns whether the cursor is handed over to the function that \p I calls. A call that is not
/// made for its value alone makes the function worth recording: frames show the caller.
bool Planner::handsOver(const Instruction &I) {
  if (!mayRecord(I))
    return false;
  const auto *Call = dyn_cast<CallBase>(&I);
  if (isa<CallBrInst>(I)) {
    missed("AsmGoto", I, "what an assembly with jumps records is not waited for");
    Sites.leaveOut(MEMLODE_LEFT_OUT_ASSEMBLY_JUMP);
    return false;
  }
  Made.Useful |= Frames && Call && isWorthAFrame(*Call, TLI);
  return true;
}

void Planner::opsOf(Instruction &I) {
  Findings Found = Accesses.find(I);
  for (const Skipped &S : Found.Skips) {
    ++NumSkipped;
    missed(S.Remark, I, S.Why);
    Sites.leaveOut(S.Reason);
  }
  const bool Waits = Looks.contains(&I);
  for (Access &A : Found.Accesses) {
    A.Flags |= Waits ? MEMLODE_FLAG_POLL : 0;
    if (!A.Behind)
      access(A);
  }
  if (!isa<CallBase>(I) && (acquires(I) || (Waits && acquiresByWaiting(I)))) {
    if (Value *Object = atomicObject(I))
      sync(I.getNextNode(), Object, MEMLODE_SYNC_ACQUIRE);
    else
      stamp(I.getNextNode(), Word::How::Stamp);
  }
  if (auto *Call = dyn_cast<CallBase>(&I)) {
    for (const SyncCall &What : syncsOf(*Call))
      if (!What.IsBehind)
        sync(Call, *Call, What);
    released(*Call);
  }
}

/// Returns whether the filter lets an event of \p I pass; if not, reports it.
bool Planner::wanted(const Verdict &V, const Instruction &I) {
  if (V)
    return true;
  ++NumFiltered;
  missed("Filtered", I, "left out by the rule at " + Sites.rule(V));
  Sites.leaveOut(MEMLODE_LEFT_OUT_FILTER);
  return false;
}

void Planner::access(const Access &A) {
  const Verdict V = Sites.access(A);
  if (!wanted(V, *A.I))
    return;
  ++NumAccesses;
  Made.Useful = true;
  Op O;
  O.Before = A.Behind ? A.Behind : Behind ? A.I->getNextNode() : A.I;
  O.Of = A.IsParameter ? nullptr : A.I;
  O.Site = V.Site;
  O.Lanes = A.Lanes;
  switch (A.Is) {
  case Access::Shape::Plain:
    O.Code = MEMLODE_OP_ACCESS;
    O.Address = A.Pointer;
    break;
  case Access::Shape::Range:
    O.Code = MEMLODE_OP_RANGE;
    O.Address = A.Pointer;
    O.Length = A.Length;
    break;
  case Access::Shape::Compressed:
    O.Code = MEMLODE_OP_RANGE;
    O.Address = A.Pointer;
    O.Words = {{Word::How::MaskBytes, A.Mask, nullptr, A.Bytes}};
    break;
  case Access::Shape::Masked:
    O.Code = MEMLODE_OP_MASKED;
    O.Address = A.Pointer;
    O.Words = {{Word::How::Mask, A.Mask}};
    break;
  case Access::Shape::Gather:
    O.Code = MEMLODE_OP_GATHER;
    O.Words = {{Word::How::Lanes, A.Pointer}, {Word::How::Mask, A.Mask}};
    break;
  }
  if (!V.Value)
    return add(std::move(O));
  Op Value = valueOf(A);
  add(std::move(O), Value.words());
  add(std::move(Value));
}

/// Plans the words for the value that \p A moves: known behind a read, and in front of a pure
/// write.
Op Planner::valueOf(const Access &A) {
  ++NumValues;
  const uint64_t Bytes = A.Bytes * std::max(A.Lanes, 1u);
  Op O;
  O.Code = MEMLODE_OP_VALUE;
  O.Before = A.Kind == MEMLODE_KIND_STORE && !Behind ? A.I : A.I->getNextNode();
  if (A.Kind == MEMLODE_KIND_UPDATE)
    O.Words = {{Word::How::Before, A.I, nullptr, Bytes}, {Word::How::After, A.I, nullptr, Bytes}};
  else
    O.Words = {{Word::How::Moved, movedValue(*A.I), nullptr, Bytes}};
  return O;
}

const Allocator *Planner::allocatorOf(const CallBase &Call) {
  bool Mismatch;
  const Allocator *A = Functions.find(Call, Mismatch);
  if (Mismatch)
    missed("AllocatorMismatch", Call,
           "an allocation function is called with arguments other than its description needs");
  return A;
}

/// Plans the record of an object that \p Call ends, in front of the call.
static Op endOf(const CallBase &Call, const Allocator &A) {
  Op O;
  O.Code = A.Does == Allocator::Act::Free ? MEMLODE_OP_FREE : MEMLODE_OP_UNMAP;
  O.Words = {{A.Described ? Word::How::Stored : Word::How::Value, Call.getArgOperand(A.Base)}};
  if (A.Does == Allocator::Act::Unmap)
    O.Words.push_back({Word::How::Value, Call.getArgOperand(A.Size)});
  return O;
}

/// An object ends before the call that ends it: afterwards another thread may already own the address.
void Planner::released(CallBase &Call) {
  bool Mismatch;
  const Allocator *A = Functions.find(Call, Mismatch);
  if (!A || (A->Does != Allocator::Act::Free && A->Does != Allocator::Act::Unmap))
    return;
  const Verdict V = Sites.release(Call);
  if (!wanted(V, Call))
    return;
  ++NumAllocations;
  Made.Useful = true;
  Op O = endOf(Call, *A);
  O.Before = &Call;
  O.Site = V.Site;
  add(std::move(O));
}

/// Plans the record behind an instruction that may have recorded: the cursor comes back, and with
/// it the call's effects.
void Planner::returned(Instruction &I, Instruction *After) {
  if (!handsOver(I) || isa<UnreachableInst>(After))
    return;
  reload(After);
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return;
  if (Call->hasFnAttr(Attribute::ReturnsTwice))
    frame(MEMLODE_OP_RESUME, After);
  const SmallVector<SyncCall, 3> Syncs = syncsOf(*Call);
  for (const SyncCall &What : Syncs)
    if (What.IsBehind)
      sync(After, *Call, What);
  if (Syncs.empty() && waitsForOthers(*Call))
    stamp(After, Word::How::Stamp);
  if (acquires(*Call))
    sync(After, atomicObject(*Call), MEMLODE_SYNC_ACQUIRE);
  if (const Allocator *A = allocatorOf(*Call))
    allocated(*Call, *A, After);
  if (const BlockReport *Told = Blocks.find(*Call))
    reported(*Call, *Told);
  for (const Access &A : Accesses.find(I).Accesses)
    if (A.Behind)
      access(A);
}

/// Plans the record of an object that \p Call makes, behind the call.
static Op birthOf(CallBase &Call, const Allocator &A) {
  const auto argument = [&](int Position) {
    return Word{Word::How::Value, Position == Allocator::None ? nullptr : Call.getArgOperand(Position)};
  };
  Word Base{Word::How::Value, &Call};
  if (A.Does == Allocator::Act::Allocate && A.Base != Allocator::None) {
    Base.Computed =
        A.Fails == Allocator::Failure::NonZeroStatus ? Word::How::StoredIfZero : Word::How::Stored;
    Base.A = Call.getArgOperand(A.Base);
    Base.B = &Call;
  } else if (A.Fails == Allocator::Failure::MapFailed) {
    Base.Computed = Word::How::Mapped;
  }

  Op O;
  switch (A.Does) {
  case Allocator::Act::Free:
  case Allocator::Act::Unmap:
    break;
  case Allocator::Act::Allocate:
    if (A.Text) {
      O.Code = MEMLODE_OP_ALLOC;
      O.Words = {{Word::How::Text, &Call, ownDefinition(Call)},
                 {Word::How::TextBytes, &Call, ownDefinition(Call)}};
    } else if (A.Described) {
      O.Code = MEMLODE_OP_ALLOC;
      O.Words = {Base, {Word::How::Described, Base.A}};
    } else if (A.Count == Allocator::None) {
      O.Code = MEMLODE_OP_ALLOC;
      O.Words = {Base, argument(A.Size)};
    } else {
      O.Code = MEMLODE_OP_ALLOC_ARRAY;
      O.Words = {Base, argument(A.Count), argument(A.Size)};
    }
    break;
  case Allocator::Act::Resize: {
    Word Bytes = argument(A.Size);
    if (A.Count != Allocator::None)
      Bytes = {Word::How::Product, Call.getArgOperand(A.Count), Call.getArgOperand(A.Size)};
    O.Code = MEMLODE_OP_REALLOC;
    O.Words = {Base, Bytes, argument(A.Base)};
    break;
  }
  }
  return O;
}

void Planner::allocated(CallBase &Call, const Allocator &A, Instruction *After) {
  if (!makes(A))
    return;
  const Verdict V = Sites.allocation(Call);
  if (!wanted(V, Call))
    return;
  ++NumAllocations;
  Made.Useful = true;
  Op O = birthOf(Call, A);
  O.Before = After;
  O.Site = V.Site;
  // Memory that another thread gave back: what it did there comes first. The allocator has synchronised a
  // while ago.
  stamp(After, Word::How::LooseStamp);
  add(std::move(O));
}

/// A segment that the recorder writes: a stamp, and an object that comes or goes. The words are its affair.
static Segment ofReport(uint8_t Code, uint32_t Site) {
  Segment S;
  S.Ops.resize(2);
  S.Ops[0].Code = MEMLODE_OP_STAMP;
  S.Ops[0].Words = {{Word::How::LooseStamp}};
  S.Ops[1].Code = Code;
  S.Ops[1].Site = Site;
  S.Ops[1].Words.resize(Code == MEMLODE_OP_FREE ? 1 : Code == MEMLODE_OP_ALLOC ? 2 : 3);
  return S;
}

/// Plans the records of blocks that \p Call says are there or gone.
void Planner::reported(CallBase &Call, const BlockReport &Told) {
  for (unsigned Number = 0; Number < Told.Anchors; ++Number) {
    const Verdict V = Told.makes() ? Sites.block(Call, Number) : Sites.release(Call);
    if (!wanted(V, Call))
      continue;
    ++NumAllocations;
    Made.Useful = true;
    Made.Reports.push_back(
        {&Call, LibcBlocks::FirstAnchor + Number, static_cast<unsigned>(Made.Segments.size())});
    Made.Segments.push_back(ofReport(Told.Code, V.Site));
    Open = false;
  }
}

/// Plans the record of objects that \p Copy, the dormant side's copy of \p Call, makes or ends. Its
/// stamp orders it with records of other threads.
void Planner::whileDormant(CallBase &Call, CallBase &Copy) {
  if (Blocks.find(Call)) {
    const std::vector<ReportStep> Known = Made.Reports;
    for (const ReportStep &S : Known)
      if (S.Call == &Call)
        Made.Reports.push_back({&Copy, S.Argument, S.Segment});
    return;
  }
  bool Mismatch;
  const Allocator *A = Functions.find(Call, Mismatch);
  // Nothing fits between a call that has to be in tail position and its return.
  if (!A || Copy.isMustTailCall() || isa<CallBrInst>(Copy))
    return;
  const Verdict V = makes(*A) ? Sites.allocation(Call) : Sites.release(Call);
  if (!V)
    return;
  Op Stamp;
  Stamp.Code = MEMLODE_OP_STAMP;
  Stamp.Words = {{Word::How::LooseStamp}};
  Op O = makes(*A) ? birthOf(Copy, *A) : endOf(Copy, *A);
  O.Site = V.Site;
  Made.Dormant.push_back({&Copy, static_cast<unsigned>(Made.Segments.size())});
  Made.Segments.emplace_back();
  Made.Segments.back().Ops = {std::move(Stamp), std::move(O)};
}

void Planner::frame(uint8_t Code, Instruction *Before) {
  Op O;
  O.Code = Code;
  O.Before = Before;
  O.Words = {{Word::How::Frame}};
  add(std::move(O));
}

void Planner::stamp(Instruction *Before, Word::How How) {
  if (!Stamps)
    return;
  ++NumStamps;
  Made.Useful = true;
  Op O;
  O.Code = MEMLODE_OP_STAMP;
  O.Before = Before;
  O.Words = {{How}};
  add(std::move(O));
}

/// Begins with the words that order threads: a release's stamp may be read early.
Op Planner::syncOp(Instruction *Before, uint8_t Kind) {
  ++NumStamps;
  Made.Useful = true;
  Op O;
  O.Code = MEMLODE_OP_SYNC;
  O.Sync = Kind;
  O.Before = Before;
  O.Words = {{Kind & 1 ? Word::How::LooseStamp : Word::How::Stamp}};
  return O;
}

/// Returns whether only the current function can take away the memory at \p Pointer.
static bool isOfFrame(const Value *Pointer) { return isa<AllocaInst>(getUnderlyingObject(Pointer)); }

/// Plans the words for the effect of \p Call on the order of threads. A joined handle is read in
/// front of the call, which forgets it. A created handle is read behind the call, if its place is
/// in the frame: the new thread may have freed any other memory, and its handle with it.
void Planner::sync(Instruction *Before, CallBase &Call, const SyncCall &What) {
  if (!Stamps)
    return;
  Word Object{Word::How::Value, Call.getArgOperand(What.Object)};
  if (What.IsReturned) {
    IRBuilder<> B(Before);
    Value *Handle = B.CreateExtractValue(&Call, 1);
    Object.A = Handle->getType()->isPointerTy() ? B.CreatePtrToInt(Handle, B.getInt64Ty()) : Handle;
  } else if (What.Distance != 0) {
    IRBuilder<> B(&Call);
    Object.A = B.CreatePtrAdd(Object.A, B.getInt64(What.Distance));
  } else if (What.Kind == MEMLODE_SYNC_CREATE) {
    if (!isOfFrame(Object.A))
      Object.A = ConstantInt::get(Type::getInt64Ty(F.getContext()), MEMLODE_STREAM_UNKNOWN_HANDLE);
    else if (What.Done == SyncCall::If::Zero)
      Object = {Word::How::StoredIfZero, Object.A, &Call};
    else
      Object.Computed = Word::How::Stored;
  } else if (What.IsStored) {
    IRBuilder<> B(&Call);
    Object.A = B.CreateLoad(B.getInt64Ty(), Object.A);
  }
  if (What.Done != SyncCall::If::Always && Object.Computed == Word::How::Value) {
    IRBuilder<> B(Before);
    Value *Done = What.Done == SyncCall::If::Zero ? B.CreateIsNull(&Call) : B.CreateIsNotNull(&Call);
    Object.A = B.CreateSelect(Done, Object.A, Constant::getNullValue(Object.A->getType()));
  }
  Op O = syncOp(Before, What.Kind);
  O.Words.insert(O.Words.begin(), Object);
  if (What.MakesThreads)
    O.Words.back().Computed = Word::How::FirstStamp;
  add(std::move(O));
}

/// An atomic operation on \p Object.
void Planner::sync(Instruction *Before, Value *Object, uint8_t Kind) {
  if (!Stamps)
    return;
  Op O = syncOp(Before, Kind);
  O.Address = Object;
  add(std::move(O));
}

/// A thread begins or ends the body of a parallel region.
void Planner::syncOfBody(Instruction *Before, int64_t Distance, uint8_t Kind) {
  if (!Stamps)
    return;
  IRBuilder<> B(Before);
  Op O = syncOp(Before, Kind);
  O.Words.insert(O.Words.begin(),
                 {Word::How::Value, Distance ? B.CreatePtrAdd(&F, B.getInt64(Distance)) : &F});
  add(std::move(O));
}

void Planner::exit(Instruction *Before) {
  if (isForkedBody(F))
    syncOfBody(Before, EndOfBody, MEMLODE_SYNC_SIGNAL);
  if (Frames) {
    Op O;
    O.Code = MEMLODE_OP_EXIT;
    O.Before = Before;
    add(std::move(O));
  }
  commit(Before);
}

void Planner::add(Op O, unsigned Behind) {
  const unsigned Words = O.words();
  if (!Open || OpenWords + Words + Behind > MEMLODE_STREAM_MAX_SEGMENT_WORDS) {
    Step S{Step::What::Segment};
    S.Segment = Made.Segments.size();
    Steps->push_back(S);
    Made.Segments.emplace_back();
    Open = true;
    OpenWords = 1;
  }
  OpenWords += Words;
  Made.Segments.back().Ops.push_back(std::move(O));
}

void Planner::commit(Instruction *Before) {
  Open = false;
  Steps->push_back({Step::What::Commit, 0, Before});
}

void Planner::reload(Instruction *Before) {
  Open = false;
  Steps->push_back({Step::What::Reload, 0, Before});
}

void Planner::missed(const char *Remark, const Instruction &I, const Twine &Why) {
  Remarks.emit([&] { return OptimizationRemarkMissed(DEBUG_TYPE, Remark, &I) << Why.str(); });
}

} // namespace memlode
