//===- Versions.cpp -------------------------------------------------------===//

#include "sides/Versions.h"

#include "LlvmCompat.h"
#include "find/AssemblyText.h"
#include "sides/DormantFunctions.h"
#include "sides/LabelTable.h"

#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/SSAUpdaterBulk.h"

#include <cstddef>

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumVersions, "Functions with a dormant side");
STATISTIC(NumCrossings, "Loops and labels at which sides are changed");
STATISTIC(NumJoined, "Values of the two sides joined");

namespace memlode {

namespace {

bool touchesMemory(const Instruction &I) {
  return I.mayReadOrWriteMemory() && !I.isDebugOrPseudoInst() && !I.isLifetimeStartOrEnd();
}

bool calls(const Instruction &I) { return isa<CallBase>(I) && !isa<IntrinsicInst>(I); }

/// A place in a loop where control may change sides.
enum class Crossing {
  None,
  Wake, ///< to the recording side only
  Both,
};

/// Fewer rounds are over before a burst is.
constexpr unsigned ManyRounds = 4096;

/// In a loop without calls inside another loop, recording is not left: the outer loop has the test,
/// and addresses stay easier to derive. Recording is resumed there if the loop may run long, or a
/// sample would never show more than the beginnings of such loops. Loops that search for something
/// are mostly over soon, and too small for it.
Crossing crossingOf(const Loop &L, ScalarEvolution &SE) {
  if (L.getHeader()->isEHPad() || L.getHeader()->hasAddressTaken())
    return Crossing::None;
  bool Touches = false, Calls = false;
  for (const BasicBlock *B : L.blocks())
    for (const Instruction &I : *B) {
      Touches |= touchesMemory(I);
      Calls |= calls(I);
    }
  if (Calls || (Touches && (!L.isInnermost() || L.isOutermost())))
    return Crossing::Both;
  const unsigned Most = SE.getSmallConstantMaxTripCount(&L);
  const bool MayBeLong = SE.hasLoopInvariantBackedgeTakenCount(&L) && (Most == 0 || Most >= ManyRounds);
  return Touches && MayBeLong ? Crossing::Wake : Crossing::None;
}

class Maker {
public:
  Maker(Function &F, DominatorTree &DT, LoopInfo &LI, ScalarEvolution &SE,
        const SmallPtrSetImpl<const BasicBlock *> &Uncrossed)
      : F(F), DT(DT), LI(LI), SE(SE), Uncrossed(Uncrossed) {
    // A function's own labels are of use if each jump between them passes a place where sides are changed.
    if (const LabelTable Found = labelTableOf(F); Found && LI.isLoopHeader(Found.Jump->getParent())) {
      Own = Found;
      Dispatch = Found.Jump->getParent();
    }
  }

  Versions run() {
    findCrossings();
    ++NumVersions;
    if (Headers.empty() && Labels.empty() && mayStandApart(F))
      return standApart(F);
    Instruction *First = &*F.getEntryBlock().begin();
    // What needs no memory is computed once for both sides.
    while (!First->isTerminator() && !touchesMemory(*First) && !isa<CallBase>(First))
      First = First->getNextNode();
    Made.Body = SplitBlock(&F.getEntryBlock(), First, &DT, &LI);
    splitCrossings();
    clone();
    makeSwitch(&F.getEntryBlock(), cast<BasicBlock>(Copies[Made.Body]));
    for (BasicBlock *Header : Headers)
      crossLoop(Header);
    for (BasicBlock *Label : Labels)
      shareLabel(Label);
    if (!Headers.empty() || !Labels.empty())
      joinValues();
    NumCrossings += Headers.size() + Labels.size();
    return std::move(Made);
  }

private:
  void findCrossings() {
    SmallVector<std::pair<Loop *, Crossing>, 8> Loops;
    for (Loop *L : LI.getLoopsInPreorder()) {
      const Crossing Kind = L->getHeader() == Dispatch ? Crossing::Both : crossingOf(*L, SE);
      if (Kind != Crossing::None && !Uncrossed.contains(L->getHeader()))
        Loops.push_back({L, Kind});
    }
    for (auto [L, Kind] : Loops) {
      if (!L->getLoopPreheader() && !InsertPreheaderForLoop(L, &DT, &LI, nullptr, /*PreserveLCSSA=*/false))
        continue;
      Headers.push_back(L->getHeader());
      if (Kind == Crossing::Wake)
        OnlyWakes.insert(L->getHeader());
    }
    if (is_contained(Headers, Dispatch))
      return;
    Own = {};
    Dispatch = nullptr;
    for (BasicBlock &B : F)
      if (B.hasAddressTaken())
        Labels.push_back(&B);
  }

  /// A header, and the block in front of it, become blocks of their own.
  void splitCrossings() {
    for (BasicBlock *Header : Headers) {
      BasicBlock *Preheader = LI.getLoopFor(Header)->getLoopPreheader();
      Fronts[Header] = SplitEdge(Preheader, Header, &DT, &LI);
      SplitBlock(Header, &*Header->getFirstNonPHIIt(), &DT, &LI);
    }
    for (BasicBlock *Label : Labels)
      SplitBlock(Label, &*Label->getFirstNonPHIIt(), &DT, &LI);
  }

  void clone() {
    // The value of an address is the same on both sides, unless it comes from a table of each side's own.
    for (BasicBlock *Label : Labels) {
      auto *Address = BlockAddress::get(&F, Label);
      Copies[Address] = Address;
    }
    if (Own) {
      Made.DormantLabels = newTable(*Own.Table);
      Copies[Own.Table] = Made.DormantLabels;
    }
    SmallVector<BasicBlock *, 32> Blocks;
    for (BasicBlock &B : F)
      if (&B != &F.getEntryBlock())
        Blocks.push_back(&B);
    for (BasicBlock *B : Blocks) {
      BasicBlock *Copy = CloneBasicBlock(B, Copies, ".dormant", &F);
      Copies[B] = Copy;
      Made.Dormant.insert(Copy);
      for (auto [I, C] : zip_equal(*B, *Copy)) {
        if (!I.use_empty())
          Pairs.push_back({&I, &C});
        if (calls(I))
          Made.Calls.push_back({cast<CallBase>(&I), cast<CallBase>(&C)});
      }
      Copied.push_back(Copy);
    }
    const auto Flags = RF_NoModuleLevelChanges | RF_IgnoreMissingLocals;
    for (BasicBlock *Copy : Copied)
      for (Instruction &I : *Copy) {
        RemapDbgRecordRange(F.getParent(), I.getDbgRecordRange(), Copies, Flags);
        RemapInstruction(&I, Copies, Flags);
      }
  }

  /// A table with one more label than \p Table.
  static GlobalVariable *newTable(const GlobalVariable &Table) {
    auto *Labels = cast<ArrayType>(Table.getValueType());
    auto *Longer = ArrayType::get(Labels->getElementType(), Labels->getNumElements() + 1);
    auto *New = new GlobalVariable(*const_cast<Module *>(Table.getParent()), Longer, /*isConstant=*/true,
                                   GlobalValue::PrivateLinkage, nullptr, Table.getName() + ".dormant");
    New->copyAttributesFrom(&Table);
    New->setComdat(const_cast<Comdat *>(Table.getComdat()));
    return New;
  }

  /// The labels of the table of the recording side, as they are here, and \p Wake.
  void fillTable(BasicBlock *Wake) {
    SmallVector<Constant *, 64> Labels;
    for (const Use &Element : cast<ConstantArray>(Own.Table->getInitializer())->operands())
      Labels.push_back(BlockAddress::get(&F, copyOf(cast<BlockAddress>(Element.get())->getBasicBlock())));
    Labels.push_back(BlockAddress::get(&F, Wake));
    Made.DormantLabels->setInitializer(
        ConstantArray::get(cast<ArrayType>(Made.DormantLabels->getValueType()), Labels));
  }

  BasicBlock *copyOf(BasicBlock *B) { return cast<BasicBlock>(Copies[B]); }

  Value *copyOf(Value *V) {
    auto Found = Copies.find(V);
    return Found == Copies.end() ? V : static_cast<Value *>(Found->second);
  }

  BasicBlock *newBlock(const Twine &Name, BasicBlock *To, const DebugLoc &Where) {
    BasicBlock *B = BasicBlock::Create(F.getContext(), Name, &F, To);
    IRBuilder<> Builder(B);
    Builder.SetCurrentDebugLocation(Where);
    Builder.CreateBr(To);
    return B;
  }

  /// Ends \p At, which has one successor, with the choice between it and \p To. Returns the block on the way.
  BasicBlock *makeSwitch(BasicBlock *At, BasicBlock *To) {
    Instruction *Jump = At->getTerminator();
    BasicBlock *Sleep = newBlock("memlode.sleep", To, Jump->getDebugLoc());
    IRBuilder<>(Jump).CreateCondBr(ConstantInt::getFalse(F.getContext()), Sleep, At->getSingleSuccessor());
    Jump->eraseFromParent();
    Made.Dormant.insert(Sleep);
    Made.Switches.insert(At);
    return Sleep;
  }

  /// \p Front, the only block that leads into the loop of \p Header from outside, gets another
  /// predecessor, \p New, where the loop's values are those of the other side.
  void addEntry(BasicBlock *Header, BasicBlock *Front, BasicBlock *New, BasicBlock *OtherHeader) {
    BasicBlock *Old = *find_if(predecessors(Front), [&](BasicBlock *Pred) { return Pred != New; });
    auto Other = OtherHeader->phis().begin();
    for (PHINode &Phi : Header->phis()) {
      PHINode *Joined = PHINode::Create(Phi.getType(), 2, Phi.getName(), Front->begin());
      Joined->setDebugLoc(Phi.getDebugLoc());
      Joined->addIncoming(Phi.getIncomingValueForBlock(Front), Old);
      Joined->addIncoming(&*Other++, New);
      Phi.setIncomingValueForBlock(Front, Joined);
    }
  }

  void crossLoop(BasicBlock *Header) {
    BasicBlock *Dormant = copyOf(Header);
    BasicBlock *Front = Fronts[Header];
    BasicBlock *DormantFront = copyOf(Front);

    if (OnlyWakes.contains(Header)) {
      MergeBlockIntoPredecessor(Header->getSingleSuccessor());
    } else {
      BasicBlock *Sleep = makeSwitch(Header, DormantFront);
      addEntry(Dormant, DormantFront, Sleep, Header);
    }

    Instruction *Jump = Dormant->getTerminator();
    BasicBlock *Wake = newBlock("memlode.wake", Front, Jump->getDebugLoc());
    addEntry(Header, Front, Wake, Dormant);
    Made.Wakes.insert(Wake);
    if (Header == Dispatch)
      return wakeByTable(Dormant, Wake);
    IRBuilder<> B(Jump);
    MDNode *Usual = MDBuilder(F.getContext()).createLikelyBranchWeights();
    B.CreateCondBr(B.CreateIsNotNull(loadDormant(B)), Dormant->getSingleSuccessor(), Wake, Usual);
    Jump->eraseFromParent();
  }

  /// The jump through the table leads to \p Wake itself, the last label of it: a choice between two
  /// addresses, so that an interpreter's dispatch has no branch more than it had.
  void wakeByTable(BasicBlock *Dormant, BasicBlock *Wake) {
    Made.Dormant.erase(Dormant->getSingleSuccessor());
    MergeBlockIntoPredecessor(Dormant->getSingleSuccessor());
    auto *Jump = cast<IndirectBrInst>(Dormant->getTerminator());
    auto *Load = cast<LoadInst>(Jump->getAddress());
    IRBuilder<> B(Load);
    Type *Table = Made.DormantLabels->getValueType();
    Value *Last =
        B.CreateConstInBoundsGEP2_64(Table, Made.DormantLabels, 0, Table->getArrayNumElements() - 1);
    Load->setOperand(0, B.CreateSelect(B.CreateIsNotNull(loadDormant(B)), Load->getPointerOperand(), Last));
    fillTable(Wake);
    B.SetInsertPoint(Jump);
    // A cloned jump has no room for one more destination.
    IndirectBrInst *Wider = B.CreateIndirectBr(Load, Jump->getNumDestinations() + 1);
    for (BasicBlock *Label : successors(Jump))
      Wider->addDestination(Label);
    Wider->addDestination(Wake);
    Jump->eraseFromParent();
  }

  /// An address leads to the recording side's label only, so both sides jump there, and it leads on.
  void shareLabel(BasicBlock *Label) {
    BasicBlock *Dormant = copyOf(Label);
    BasicBlock *Sleep = makeSwitch(Label, Dormant);
    SmallVector<BasicBlock *, 2> Jumps;
    for (BasicBlock *Pred : predecessors(Dormant))
      if (isa<IndirectBrInst>(Pred->getTerminator()) && !is_contained(Jumps, Pred))
        Jumps.push_back(Pred);
    for (PHINode &Phi : Label->phis()) {
      auto *Copy = cast<PHINode>(copyOf(static_cast<Value *>(&Phi)));
      for (BasicBlock *Jump : Jumps)
        // A jump may name a label several times, and phis name it as often.
        for (int I; (I = Copy->getBasicBlockIndex(Jump)) >= 0;) {
          Phi.addIncoming(Copy->getIncomingValue(I), Jump);
          Copy->removeIncomingValue(I, /*DeletePHIIfEmpty=*/false);
        }
      Copy->addIncoming(&Phi, Sleep);
    }
    for (BasicBlock *Jump : Jumps) {
      Jump->getTerminator()->replaceSuccessorWith(Dormant, Label);
      if (!is_contained(Made.SharedJumps, Jump->getTerminator()))
        Made.SharedJumps.push_back(Jump->getTerminator());
    }
  }

  /// A value of one side may now be used where control came from the other.
  void joinValues() {
    DT.recalculate(F);
    SSAUpdaterBulk Updater;
    for (auto [I, C] : Pairs)
      join(Updater, *I, *C);
    SmallVector<PHINode *, 32> Joined;
    Updater.RewriteAllUses(&DT, &Joined);
    NumJoined += Joined.size();
  }

  static void join(SSAUpdaterBulk &Updater, Instruction &I, Instruction &C) {
    SmallVector<Use *, 8> Uses;
    for (Instruction *Side : {&I, &C})
      for (Use &U : Side->uses()) {
        auto *User = cast<Instruction>(U.getUser());
        const auto *Phi = dyn_cast<PHINode>(User);
        if ((Phi ? Phi->getIncomingBlock(U) : User->getParent()) != Side->getParent())
          Uses.push_back(&U);
      }
    if (Uses.empty())
      return;
    const unsigned Variable = Updater.AddVariable(I.getName(), I.getType());
    Updater.AddAvailableValue(Variable, I.getParent(), &I);
    Updater.AddAvailableValue(Variable, C.getParent(), &C);
    for (Use *U : Uses)
      Updater.AddUse(Variable, U);
  }

  Function &F;
  DominatorTree &DT;
  LoopInfo &LI;
  ScalarEvolution &SE;
  const SmallPtrSetImpl<const BasicBlock *> &Uncrossed;
  Versions Made;
  SmallVector<BasicBlock *, 8> Headers;   ///< of the loops in which sides may be changed
  SmallPtrSet<BasicBlock *, 8> OnlyWakes; ///< headers in which recording is taken up, and not left
  LabelTable Own;                         ///< copied, so that each side jumps to its own labels
  BasicBlock *Dispatch = nullptr;         ///< the header of the loop that does
  SmallVector<BasicBlock *, 8> Labels;    ///< whose addresses are taken, and that both sides share
  DenseMap<BasicBlock *, BasicBlock *> Fronts;
  ValueToValueMapTy Copies;
  SmallVector<BasicBlock *, 32> Copied;
  SmallVector<std::pair<Instruction *, Instruction *>, 64> Pairs; ///< a value and its copy
};

} // namespace

Versions makeVersions(Function &F, DominatorTree &DT, LoopInfo &LI, ScalarEvolution &SE,
                      const SmallPtrSetImpl<const BasicBlock *> &Uncrossed) {
  return Maker(F, DT, LI, SE, Uncrossed).run();
}

/// Returns whether a line of assembly may be a macro.
static bool hasMacros(const Module &M) { return StringRef(M.getModuleInlineAsm()).contains(".macro"); }

const char *whySingle(const Function &F) {
  const Triple Target = targetOf(*F.getParent());
  for (const Argument &A : F.args())
    if (A.hasSwiftErrorAttr() || A.hasInAllocaAttr() || A.hasPreallocatedAttr())
      return "it passes arguments in a way that ties them to one place";
  for (const Instruction &I : instructions(F)) {
    if (isa<CallBrInst>(I))
      return "it has an assembly with jumps";
    if (I.getType()->isTokenTy())
      return "parts of it are tied together by tokens";
    if (I.getType()->isX86_AMXTy())
      return "it has tiles, which live in registers alone";
    const auto *Call = dyn_cast<CallBase>(&I);
    const auto *Asm = Call ? dyn_cast<InlineAsm>(Call->getCalledOperand()) : nullptr;
    if (Asm && !StringRef(Asm->getAsmString()).empty() &&
        (readAssembly(*Asm, Target).Defines || hasMacros(*F.getParent())))
      return "an assembly in it defines what must not be there twice";
    if (Call && (Call->cannotDuplicate() || Call->getIntrinsicID() == Intrinsic::localescape))
      return "a call in it must not be made twice";
  }
  return nullptr;
}

void dropDormant(Function &F, const Versions &Sides) {
  for (BasicBlock *At : Sides.Switches) {
    auto *Choice = cast<BranchInst>(At->getTerminator());
    IRBuilder<>(Choice).CreateBr(Choice->getSuccessor(1));
    Choice->eraseFromParent();
  }
  removeUnreachableBlocks(F);
  if (Sides.DormantLabels)
    Sides.DormantLabels->eraseFromParent();
  for (Function *Other : {Sides.Apart, Sides.Front, Sides.Ask})
    if (Other)
      Other->eraseFromParent();
}

Value *loadDormant(IRBuilder<> &B) {
  Module &M = *B.GetInsertBlock()->getModule();
  Constant *Word = ConstantExpr::getInBoundsGetElementPtr(
      B.getInt8Ty(), cast<Constant>(M.getOrInsertGlobal("__memlode_control", B.getInt8Ty())),
      B.getInt64(offsetof(struct memlode_process_header, dormant)));
  return B.CreateAlignedLoad(B.getInt64Ty(), Word, Align(8), /*isVolatile=*/true);
}

} // namespace memlode
