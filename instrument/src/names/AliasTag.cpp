//===- AliasTag.cpp -------------------------------------------------------===//
#include "names/AliasTag.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Metadata.h"

using namespace llvm;

namespace memlode {

namespace {

/// Type nodes begin with their name; those of the newer, sized format do not, and are not read here.
StringRef nodeName(const MDNode *N) {
  if (!N || N->getNumOperands() == 0)
    return "";
  auto *Name = dyn_cast_or_null<MDString>(N->getOperand(0).get());
  return Name ? Name->getString() : "";
}

std::string demangledType(StringRef Mangled) {
  std::string Text = demangle(Mangled);
  StringRef Plain = Text;
  return Plain.consume_front("typeinfo name for ") ? Plain.str() : std::string();
}

/// flang's tags name a kind of variable ("dummy arg data"), never a type.
bool saysKind(const MDNode *Node) {
  for (unsigned I = 0; I != 8 && Node && Node->getNumOperands() > 1; ++I)
    Node = dyn_cast_or_null<MDNode>(Node->getOperand(1).get());
  return nodeName(Node).starts_with("Flang function root");
}

} // namespace

AliasTag AliasTag::of(const Instruction &I) {
  AliasTag Tag;
  const MDNode *N = I.getMetadata(LLVMContext::MD_tbaa);
  if (!N || N->getNumOperands() < 3)
    return Tag;
  auto *Base = dyn_cast_or_null<MDNode>(N->getOperand(0).get());
  auto *Access = dyn_cast_or_null<MDNode>(N->getOperand(1).get());
  auto *Offset = mdconst::dyn_extract_or_null<ConstantInt>(N->getOperand(2));
  if (!Base || !Access || !Offset || saysKind(Access))
    return Tag;
  Tag.Scalar = nodeName(Access);
  if (Base != Access) {
    Tag.Record = nodeName(Base);
    Tag.Offset = Offset->getZExtValue();
  }
  return Tag;
}

std::string AliasTag::scalarType() const {
  if (Scalar.empty() || Scalar == "omnipotent char" || isVTable() || Scalar.contains("TBAA"))
    return "";
  if (Scalar == "any pointer" || Scalar == "any p2 pointer")
    return "void *";
  StringRef S = Scalar;
  unsigned Stars = 0;
  // "p2 int" is a pointer to a pointer to int.
  if (S.size() > 3 && S[0] == 'p' && S[1] >= '1' && S[1] <= '9' && S[2] == ' ') {
    Stars = S[1] - '0';
    S = S.drop_front(3);
  }
  if (S == "omnipotent char")
    S = "char";
  std::string Base = S.starts_with("_ZTS") ? demangledType(S) : S.str();
  if (Base.empty())
    return Stars ? "void *" : "";
  return Stars ? Base + " " + std::string(Stars, '*') : Base;
}

} // namespace memlode
