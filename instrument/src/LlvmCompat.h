//===- LlvmCompat.h - what differs between the LLVMs we build for ---------===//
//
// The only file that asks which LLVM this is (19 and 22 are built and tested).
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_LLVMCOMPAT_H
#define MEMLODE_INSTRUMENT_LLVMCOMPAT_H

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/InstructionCost.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

#include <functional>

namespace memlode {

/// Runs \p Add for the last optimisation step of every pipeline that ends in code generation. Before LLVM 20
/// the callback cannot tell the first half of an LTO build from a whole one; there the rule that the plug-in
/// is loaded at link time only is the driver's to keep.
inline void atOptimizerLast(llvm::PassBuilder &PB,
                            const std::function<void(llvm::ModulePassManager &)> &Add) {
#if LLVM_VERSION_MAJOR >= 20
  PB.registerOptimizerLastEPCallback(
      [Add](llvm::ModulePassManager &MPM, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase Phase) {
        if (Phase == llvm::ThinOrFullLTOPhase::None || Phase == llvm::ThinOrFullLTOPhase::ThinLTOPostLink)
          Add(MPM);
      });
#else
  PB.registerOptimizerLastEPCallback(
      [Add](llvm::ModulePassManager &MPM, llvm::OptimizationLevel) { Add(MPM); });
#endif
}

/// Runs \p Add where the second half of a ThinLTO build begins, for each module with its imports.
/// Before LLVM 20 the callback cannot distinguish this half from other pipelines, and there nothing
/// is run.
inline void atThinLinkStart(llvm::PassBuilder &PB,
                            const std::function<void(llvm::ModulePassManager &)> &Add) {
#if LLVM_VERSION_MAJOR >= 20
  PB.registerPipelineEarlySimplificationEPCallback(
      [Add](llvm::ModulePassManager &MPM, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase Phase) {
        if (Phase == llvm::ThinOrFullLTOPhase::ThinLTOPostLink)
          Add(MPM);
      });
#else
  (void)PB;
  (void)Add;
#endif
}

/// The DWARF number of the language that \p Unit is written in. LLVM 22 has another way to say it too.
inline llvm::dwarf::SourceLanguage languageOf(const llvm::DICompileUnit &Unit) {
#if LLVM_VERSION_MAJOR >= 22
  const llvm::DISourceLanguageName Name = Unit.getSourceLanguage();
  const unsigned Number =
      Name.hasVersionedName()
          ? llvm::dwarf::toDW_LANG(static_cast<llvm::dwarf::SourceLanguageName>(Name.getName()),
                                   Name.getVersion())
                .value_or(llvm::dwarf::SourceLanguage(0))
          : Name.getUnversionedName();
#else
  const unsigned Number = Unit.getSourceLanguage();
#endif
  return static_cast<llvm::dwarf::SourceLanguage>(Number);
}

/// Returns the target of \p M: a string before LLVM 21.
inline llvm::Triple targetOf(const llvm::Module &M) { return llvm::Triple(M.getTargetTriple()); }

/// Returns the value of \p Cost, which must be valid: an optional before LLVM 21.
inline int64_t valueOf(const llvm::InstructionCost &Cost) {
#if LLVM_VERSION_MAJOR >= 21
  return Cost.getValue();
#else
  return *Cost.getValue();
#endif
}

/// A SCEVExpander that adds no LCSSA phis: they would stand where control is about to get another
/// way in. Before LLVM 20 its constructor needs the data layout.
class Expander : public llvm::SCEVExpander {
public:
  explicit Expander(llvm::ScalarEvolution &SE)
#if LLVM_VERSION_MAJOR >= 20
      : SCEVExpander(SE, "memlode", /*PreserveLCSSA=*/false){}
#else
      : SCEVExpander(SE, SE.getDataLayout(), "memlode", /*PreserveLCSSA=*/false) {
  }
#endif
};

/// Operands of llvm.masked.{load,store,gather,scatter}: LLVM 22 turned the alignment operand into an
/// attribute.
struct MaskedOperands {
  llvm::Value *Pointer; ///< or vector of pointers
  llvm::Value *Mask;
  llvm::Value *Stored; ///< null for a load
};

inline MaskedOperands maskedOperands(const llvm::IntrinsicInst &II) {
  const bool Stores = II.getType()->isVoidTy();
  const unsigned Pointer = Stores ? 1 : 0;
#if LLVM_VERSION_MAJOR >= 22
  const unsigned Mask = Pointer + 1;
#else
  const unsigned Mask = Pointer + 2;
#endif
  return {II.getArgOperand(Pointer), II.getArgOperand(Mask), Stores ? II.getArgOperand(0) : nullptr};
}

/// Returns the declaration in \p M of an intrinsic that has one type.
inline llvm::Function *declarationOf(llvm::Module &M, llvm::Intrinsic::ID ID) {
#if LLVM_VERSION_MAJOR >= 20
  return llvm::Intrinsic::getOrInsertDeclaration(&M, ID);
#else
  return llvm::Intrinsic::getDeclaration(&M, ID);
#endif
}

/// Returns the effects on memory that LLVM declares for the intrinsic.
inline llvm::MemoryEffects effectsOf(llvm::LLVMContext &Context, llvm::Intrinsic::ID ID) {
#if LLVM_VERSION_MAJOR >= 21
  return llvm::Intrinsic::getFnAttributes(Context, ID).getMemoryEffects();
#else
  return llvm::Intrinsic::getAttributes(Context, ID).getMemoryEffects();
#endif
}

/// Returns whether the intrinsic is of one target alone.
inline bool isTargetIntrinsic(llvm::Intrinsic::ID ID) {
#if LLVM_VERSION_MAJOR >= 20
  return llvm::Intrinsic::isTargetIntrinsic(ID);
#else
  return llvm::Function::isTargetIntrinsic(ID);
#endif
}

} // namespace memlode
#endif
