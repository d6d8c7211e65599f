//===- Cursor.cpp ---------------------------------------------------------===//

#include "emit/Cursor.h"

#include "memlode_format.h"
#include "sides/DormantFunctions.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumRoomTests, "Tests for room");

namespace memlode {

Cursor::Cursor(Function &F, const Versions &Sides, bool Briefly)
    : F(F), M(*F.getParent()), Sides(Sides), Briefly(Briefly), Int64(Type::getInt64Ty(F.getContext())),
      Pointer(PointerType::getUnqual(F.getContext())) {
  IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
  Variable = B.CreateAlloca(Pointer, nullptr, "memlode.cursor");
}

Value *Cursor::threadCursor(IRBuilder<> &B) {
  auto *Variable = cast<GlobalVariable>(M.getOrInsertGlobal("__memlode_cursor", Pointer));
  Variable->setThreadLocalMode(GlobalValue::InitialExecTLSModel);
  return B.CreateThreadLocalAddress(Variable);
}

void Cursor::testRoom(Instruction *Before, bool Fresh) {
  IRBuilder<> B(Before);
  Value *Now = B.CreateLoad(Pointer, Variable);
  const char *Name = !Fresh ? "__memlode_more" : Sides ? "__memlode_switch" : "__memlode_refill";
  if (Briefly) {
    refill(B, Now, Name);
    return;
  }
  Instruction *Cold = SplitBlockAndInsertIfThen(isFull(B, Now), Before, /*Unreachable=*/false, unlikely());
  B.SetInsertPoint(Cold);
  refill(B, Now, Name);
}

void Cursor::changeSides(BranchInst *Choice) {
  if (Sides.Apart) {
    ReplaceInstWithInst(Choice, BranchInst::Create(Choice->getSuccessor(1)));
    return choose();
  }
  const bool InLoop = Choice->getParent() != &F.getEntryBlock();
  BasicBlock *Sleep = Choice->getSuccessor(0), *Record = Choice->getSuccessor(1);
  const auto block = [&](const char *Name) { return BasicBlock::Create(F.getContext(), Name, &F, Record); };
  BasicBlock *Full = block("memlode.full"), *Ask = block("memlode.ask");
  IRBuilder<> B(Choice);
  Value *Now = B.CreateLoad(Pointer, Variable);
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

void Cursor::choose() {
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

Value *Cursor::isFull(IRBuilder<> &B, Value *Now) {
  return B.CreateIsNull(B.CreateAnd(B.CreatePtrToInt(Now, Int64), MEMLODE_RING_ROOM_BIT));
}

Value *Cursor::isAsleep(IRBuilder<> &B, Value *Now) {
  return B.CreateICmpULT(B.CreatePtrToInt(Now, Int64), loadDormant(B));
}

MDNode *Cursor::usual() { return MDBuilder(F.getContext()).createLikelyBranchWeights(); }

MDNode *Cursor::unlikely() { return MDBuilder(F.getContext()).createUnlikelyBranchWeights(); }

Value *Cursor::refill(IRBuilder<> &B, Value *Now, const char *Name) {
  CallInst *Refill = B.CreateCall(refiller(Name), {Now});
  Refill->setCallingConv(CallingConv::PreserveAll);
  B.CreateStore(Refill, Variable);
  ++NumRoomTests;
  return Refill;
}

Function *Cursor::refiller(StringRef Name) {
  const std::string Local =
      (Briefly ? "memlode.room." : "memlode.") + Name.substr(strlen("__memlode_")).str();
  if (Function *Made = M.getFunction(Local))
    return Made;
  FunctionCallee Callee = M.getOrInsertFunction(Name, Pointer, Pointer);
  auto *Jump =
      Function::Create(FunctionType::get(Pointer, {Pointer}, false), GlobalValue::InternalLinkage, Local, M);
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

} // namespace memlode
