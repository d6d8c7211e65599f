//===- AssemblyText.h - what the text of inline assembly says of itself ---===//
//
// Operands tell what an assembly touches as far as its author has said so, and
// many have not: what a register points at needs no operand. The text tells
// whether there may be more, and whether it may stand twice in a module.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_ASSEMBLYTEXT_H
#define MEMLODE_INSTRUMENT_ASSEMBLYTEXT_H

#include "llvm/IR/InlineAsm.h"
#include "llvm/TargetParser/Triple.h"

namespace memlode {

struct AssemblyText {
  /// An instruction may touch memory outside its operands: through a register, by a symbol, or by
  /// its nature.
  bool MayTouch = false;
  /// It defines something that may be defined only once: symbols, macros, contents of other
  /// sections.
  bool Defines = false;
  /// All instructions name memory and leave it alone.
  bool OnlyHints = false;
  /// An instruction changes memory in one step.
  bool IsAtomic = false;
};

/// Reads the text of \p Asm for the assembler of \p Target.
AssemblyText readAssembly(const llvm::InlineAsm &Asm, const llvm::Triple &Target);

} // namespace memlode
#endif
