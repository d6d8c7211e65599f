//===- DebugRecords.cpp ---------------------------------------------------===//
#include "names/DebugRecords.h"
#include "names/MemberPath.h"
#include "names/TypeNames.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxValuePlaces = 8; ///< kept for one value
constexpr unsigned MaxSeen = 64;       ///< records looked at for one value

/// The shapes of expression that memory accesses meet: `+ offset`, `+ offset, deref`, each maybe a fragment.
struct Recipe {
  bool Understood = true;
  int64_t Offset = 0;
  bool Deref = false;
  int64_t Beyond = 0; ///< added after the dereference
};

Recipe readExpression(const DIExpression *E) {
  Recipe R;
  if (!E)
    return R;
  int64_t Constant = 0;
  bool HaveConstant = false;
  for (const DIExpression::ExprOperand &Op : E->expr_ops()) {
    int64_t &Sum = R.Deref ? R.Beyond : R.Offset;
    switch (Op.getOp()) {
    case dwarf::DW_OP_LLVM_fragment:
    case dwarf::DW_OP_LLVM_tag_offset:
    case dwarf::DW_OP_stack_value:
      break;
    case dwarf::DW_OP_LLVM_arg:
      R.Understood &= Op.getArg(0) == 0 && R.Offset == 0;
      break;
    case dwarf::DW_OP_plus_uconst:
      Sum += static_cast<int64_t>(Op.getArg(0));
      break;
    case dwarf::DW_OP_constu:
    case dwarf::DW_OP_consts:
      Constant = static_cast<int64_t>(Op.getArg(0));
      HaveConstant = true;
      break;
    case dwarf::DW_OP_plus:
      Sum += Constant;
      R.Understood &= std::exchange(HaveConstant, false);
      break;
    case dwarf::DW_OP_minus:
      Sum -= Constant;
      R.Understood &= std::exchange(HaveConstant, false);
      break;
    case dwarf::DW_OP_deref:
      R.Understood &= !R.Deref;
      R.Deref = true;
      break;
    default:
      R.Understood = false;
    }
  }
  return R;
}

int64_t fragmentBytes(const DIExpression *E) {
  auto F = E ? E->getFragmentInfo() : std::nullopt;
  return F ? static_cast<int64_t>(F->OffsetInBits / 8) : 0;
}

} // namespace

std::string nameOf(const DILocalVariable &Var) {
  return Var.isArtificial() && Var.getName().starts_with(".") ? ".omp" : Var.getName().str();
}

namespace {

void addressPlace(const DbgVariableRecord &R, const DIExpression *E, SmallVectorImpl<Place> &Out) {
  Recipe How = readExpression(E);
  const DILocalVariable *Var = R.getVariable();
  if (!How.Understood)
    return;
  Place P;
  P.Type = Var->getType();
  P.Text = nameOf(*Var);
  P.Indirect = How.Deref;
  P.Beyond = How.Beyond;
  P.Offset = How.Deref ? -How.Offset : fragmentBytes(R.getExpression()) - How.Offset;
  P.Variable = Var;
  P.Frame = R.getDebugLoc()->getInlinedAt();
  Out.push_back(std::move(P));
}

void valuePlace(const DbgVariableRecord &R, SmallVectorImpl<Place> &Out) {
  const DIExpression *E = R.getExpression();
  Recipe How = readExpression(E);
  const DILocalVariable *Var = R.getVariable();
  if (!How.Understood || R.getNumVariableLocationOps() != 1)
    return;
  Place P;
  P.Variable = Var;
  P.Frame = R.getDebugLoc()->getInlinedAt();
  P.Text = nameOf(*Var);
  if (How.Deref) {
    if (How.Beyond)
      return;
    // The variable's value is in memory here.
    P.Type = Var->getType();
    P.Offset = fragmentBytes(E) - How.Offset;
    Out.push_back(std::move(P));
    return;
  }
  std::optional<PointerPart> Part = pointerIn(Var->getType(), fragmentBytes(E));
  if (!Part)
    return;
  if (!Part->Member.empty())
    P.Text += "." + Part->Member;
  P.Type = Part->To;
  P.Offset = -How.Offset;
  P.Arrow = !TypeNames::isReference(Part->Pointer);
  P.Repeats = true;
  Out.push_back(std::move(P));
}

} // namespace

/// Without optimisation rustc uses a variable's value from where it was computed, and stores it to a slot of
/// the stack for the debugger alone. Returns that value, or the part of it in front, if \p Slot is such a
/// slot.
static const Value *spilled(const AllocaInst &Slot) {
  const Value *Front = nullptr;
  for (const User *U : Slot.users()) {
    if (auto *S = dyn_cast<StoreInst>(U); S && S->getPointerOperand() == &Slot && !Front) {
      Front = S->getValueOperand();
      continue;
    }
    // The second half of a slice or of a pointer to a trait object.
    auto *G = dyn_cast<GetElementPtrInst>(U);
    if (!G || !all_of(G->users(), [&](const User *V) {
          return isa<StoreInst>(V) && cast<StoreInst>(V)->getPointerOperand() == G;
        }))
      return nullptr;
  }
  return Front;
}

DebugRecords::DebugRecords(Function &F) {
  auto file = [&](const Value *V, DbgVariableRecord &R, bool Spilled = false) {
    if (V && !isa<ConstantData>(V))
      ByValue[V].push_back({&R, Spilled});
  };
  for (Instruction &I : instructions(F))
    for (DbgVariableRecord &R : filterDbgVars(I.getDbgRecordRange())) {
      // An assignment speaks of two values: the variable's new one, and the address it lives at.
      for (const Value *V : R.location_ops())
        file(V, R);
      if (R.isDbgAssign())
        file(R.getAddress(), R);
      else if (R.isDbgDeclare())
        if (auto *Slot = dyn_cast_or_null<AllocaInst>(R.getAddress()))
          file(spilled(*Slot), R, /*Spilled=*/true);
    }
}

void DebugRecords::places(const Value *V, SmallVectorImpl<Place> &Out) const {
  auto It = ByValue.find(V);
  if (It == ByValue.end())
    return;
  SmallVector<std::tuple<const void *, const void *, const void *>, 8> Seen;
  for (auto [R, Spilled] : It->second) {
    if (Out.size() >= MaxValuePlaces || Seen.size() >= MaxSeen)
      break;
    // Unrolled loops repeat a record once for each copy of the body.
    std::tuple<const void *, const void *, const void *> Id{
        R->getVariable(), R->getDebugLoc()->getInlinedAt(), R->getExpression()};
    if (is_contained(Seen, Id))
      continue;
    Seen.push_back(Id);
    if (R->isDbgDeclare() && !Spilled)
      addressPlace(*R, R->getExpression(), Out);
    else if (R->isDbgAssign() && R->getAddress() == V)
      addressPlace(*R, R->getAddressExpression(), Out);
    else
      valuePlace(*R, Out);
  }
}

const DIType *DebugRecords::typeOf(const Value *V) const {
  auto It = ByValue.find(V);
  if (It == ByValue.end())
    return nullptr;
  for (auto [R, Spilled] : It->second)
    if (!R->isDbgDeclare() && R->getNumVariableLocationOps() == 1 && R->getVariableLocationOp(0) == V &&
        R->getExpression()->getNumElements() == 0)
      return R->getVariable()->getType();
  return nullptr;
}

const DIType *DebugRecords::typeAt(const Value *Slot) const {
  auto It = ByValue.find(Slot);
  if (It == ByValue.end())
    return nullptr;
  for (auto [R, Spilled] : It->second)
    if (R->isDbgDeclare() && !Spilled && R->getExpression()->getNumElements() == 0)
      return R->getVariable()->getType();
  return nullptr;
}

bool DebugRecords::globalPlace(const DIGlobalVariableExpression &E, Place &Out) {
  Recipe How = readExpression(E.getExpression());
  if (!E.getVariable() || !How.Understood || How.Deref)
    return false;
  Out.Type = E.getVariable()->getType();
  Out.Offset = fragmentBytes(E.getExpression()) - How.Offset;
  return true;
}

} // namespace memlode
