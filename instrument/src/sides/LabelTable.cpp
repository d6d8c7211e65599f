//===- LabelTable.cpp -----------------------------------------------------===//

#include "sides/LabelTable.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace memlode {

namespace {

/// The table that \p Jump takes its address from, which goes nowhere else.
GlobalVariable *tableOf(const IndirectBrInst &Jump) {
  const auto *Load = dyn_cast<LoadInst>(Jump.getAddress());
  if (!Load || !Load->isSimple() || !Load->hasOneUse() || Load->getParent() != Jump.getParent())
    return nullptr;
  const auto *Element = dyn_cast<GetElementPtrInst>(Load->getPointerOperand());
  if (!Element || !Element->hasOneUse() || Element->getParent() != Jump.getParent())
    return nullptr;
  auto *Table = dyn_cast<GlobalVariable>(Element->getOperand(0)->stripPointerCasts());
  return Table && Element->getOperand(0) == Table && Table->hasOneUse() ? Table : nullptr;
}

bool isLabelOf(const Function &F, const Use &Element) {
  const auto *Label = dyn_cast<BlockAddress>(Element.get());
  return Label && Label->getFunction() == &F;
}

/// Returns whether \p Table, and nothing else, holds the address of every label of \p F that is taken.
bool holdsAllLabels(const GlobalVariable &Table, Function &F) {
  if (!Table.isConstant() || !Table.hasLocalLinkage() || !Table.hasInitializer())
    return false;
  const auto *Labels = dyn_cast<ConstantArray>(Table.getInitializer());
  if (!Labels || !Labels->hasOneUse() ||
      !all_of(Labels->operands(), [&](const Use &Element) { return isLabelOf(F, Element); }))
    return false;
  return all_of(F, [&](BasicBlock &B) {
    return !B.hasAddressTaken() ||
           all_of(BlockAddress::get(&F, &B)->users(), [&](const User *U) { return U == Labels; });
  });
}

} // namespace

LabelTable labelTableOf(Function &F) {
  LabelTable Found;
  for (BasicBlock &B : F)
    if (auto *Jump = dyn_cast<IndirectBrInst>(B.getTerminator())) {
      if (Found.Jump)
        return {};
      Found.Jump = Jump;
    }
  if (!Found.Jump || Found.Jump->getParent()->hasAddressTaken())
    return {};
  GlobalVariable *Table = tableOf(*Found.Jump);
  if (!Table || !holdsAllLabels(*Table, F))
    return {};
  Found.Table = Table;
  return Found;
}

} // namespace memlode
