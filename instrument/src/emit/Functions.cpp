//===- Functions.cpp - which code of an image the pass has seen -----------===//
//
// The code generator writes a function's place into sections that are named by `!pcsections`, and
// binds what it wrote to the function's own section. So an entry lives and dies with the copy of the
// function that is linked: whatever the linker chooses or drops, and whoever optimises when.
//
//===----------------------------------------------------------------------===//

#include "emit/Emit.h"

#include "memlode_format.h"

#include "llvm/IR/Metadata.h"

using namespace llvm;

namespace memlode {

/// Returns the section for functions of \p M: in these code models places have 8 bytes, otherwise 4.
static StringRef sectionFor(const Module &M) {
  const auto Model = M.getCodeModel();
  const bool IsFar = Model == CodeModel::Medium || Model == CodeModel::Large;
  return IsFar ? MEMLODE_SECTION_FAR_FUNCTIONS : MEMLODE_SECTION_FUNCTIONS;
}

void listFunctions(Module &M) {
  LLVMContext &Ctx = M.getContext();
  const StringRef Section = sectionFor(M);
  const auto isOurs = [&](const MDOperand &Of) {
    const auto *Name = dyn_cast<MDString>(Of);
    return Name && Name->getString() == Section;
  };
  for (Function &F : M) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage())
      continue;
    // A sanitizer may have sections of its own there.
    SmallVector<Metadata *, 4> Sections;
    if (const MDNode *Others = F.getMetadata(LLVMContext::MD_pcsections)) {
      if (any_of(Others->operands(), isOurs))
        continue;
      Sections.append(Others->op_begin(), Others->op_end());
    }
    Sections.push_back(MDString::get(Ctx, Section));
    F.setMetadata(LLVMContext::MD_pcsections, MDNode::get(Ctx, Sections));
  }
}

} // namespace memlode
