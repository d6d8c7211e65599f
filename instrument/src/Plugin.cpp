//===- Plugin.cpp - memlode's place in LLVM's pipelines -------------------===//
//
// Names are remembered where the pipeline starts and types are whole; code is
// added where it ends, so that no optimisation is lost to it. In an LTO build
// only the link counts: the plug-in is given to the linker. To record a program as
// it is written both happen at the start, in an LTO build too.
//
//   opt -passes=memlode-names,…,memlode      runs both by hand
//
//===----------------------------------------------------------------------===//

#include "LlvmCompat.h"
#include "Options.h"
#include "describe/TypeBook.h"
#include "emit/Emit.h"
#include "find/CallEffects.h"
#include "find/RustAllocator.h"
#include "plan/CallSites.h"
#include "plan/CursorFlow.h"
#include "plan/DerivedAddresses.h"
#include "plan/LongLoops.h"
#include "plan/Segments.h"
#include "plan/TimeFacts.h"
#include "plan/UnrecordedPlaces.h"
#include "plan/WholeLoops.h"
#include "prepare/HeldAllocators.h"
#include "prepare/HiddenCalls.h"
#include "prepare/OwnTransfers.h"
#include "prepare/SourceFidelity.h"
#include "sides/CompileCost.h"
#include "sides/DormantFunctions.h"

#include "memlode_format.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/EHPersonalities.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include <memory>
#include <optional>

#define DEBUG_TYPE "memlode"

using namespace llvm;

STATISTIC(NumFunctions, "Functions instrumented");
STATISTIC(NumSkippedFunctions, "Functions left alone");

namespace memlode {

namespace {

/// Marks a function that already records.
constexpr const char *Mark = "memlode";

/// The state that the passes of one pipeline share.
class Session {
public:
  NameBook Names;
  Options Asked;
  Allocators Functions;
  Filter Wanted;

  /// Reads options and the files they name. False if there is a mistake in them, which is reported
  /// once.
  bool ready(Module &M) {
    if (!Sound)
      Sound = read(M.getContext()) && knows(M);
    return *Sound;
  }

private:
  bool read(LLVMContext &Ctx) {
    Expected<Options> Found = Options::fromEnvironment();
    if (!Found) {
      Ctx.emitError("memlode: " + toString(Found.takeError()));
      return false;
    }
    Asked = std::move(*Found);
    Wanted.AllValues = Asked.Values;
    const auto sound = [&Ctx](Error E) {
      if (!E)
        return true;
      Ctx.emitError("memlode: " + toString(std::move(E)));
      return false;
    };
    return (Asked.AllocatorFile.empty() || sound(Functions.addFile(Asked.AllocatorFile))) &&
           (Asked.FilterFile.empty() || sound(Wanted.addFile(Asked.FilterFile)));
  }

  /// A stream is made of 8-byte words that hold addresses of 48 bits.
  static bool knows(Module &M) {
    const Triple Target = targetOf(M);
    if (Target.isOSBinFormatELF() && !Target.isX32() &&
        (Target.getArch() == Triple::x86_64 || Target.getArch() == Triple::aarch64))
      return true;
    M.getContext().emitError("memlode: cannot record a program for " + Target.str() +
                             "; expected 64-bit x86 or Arm with ELF files");
    return false;
  }

  std::optional<bool> Sound;
};

class RememberPass : public PassInfoMixin<RememberPass> {
public:
  explicit RememberPass(std::shared_ptr<Session> S) : S(std::move(S)) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    if (!S->ready(M))
      return PreservedAnalyses::all();
    bool Changed = openRustAllocator(M);
    Changed |= markResourceCalls(M);
    S->Names.remember(M);
    Changed |= keepAllocators(M);
    return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

  static bool isRequired() { return true; }

private:
  /// A pool's own functions are often small: once inlined, or their arguments rewritten, no call would be
  /// left to see.
  bool keepAllocators(Module &M);

  std::shared_ptr<Session> S;
};

class InstrumentPass : public PassInfoMixin<InstrumentPass> {
public:
  /// The place in a pipeline where the pass stands. By hand, it stands where it is wanted.
  enum class Place { Start, End, ByHand };

  InstrumentPass(std::shared_ptr<Session> S, Place Where) : S(std::move(S)), Where(Where) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }

private:
  /// Returns whether this is where the user wants code to be added to \p M.
  bool isHere(Module &M) const;
  /// Plans and emits \p F; whether there was anything to record.
  bool instrument(Function &F, Form Size, FunctionAnalysisManager &FAM, Image &Into, const Frugal &Callees,
                  const SkippedFunctions &Skipped, HiddenCalls &Hidden, DormantCalls &Calls,
                  const AwaitedMemory &Awaited, const LibcBlocks &Blocks);

  std::shared_ptr<Session> S;
  Place Where;
};

bool RememberPass::keepAllocators(Module &M) {
  if (!S->Functions.hasFile())
    return false;
  SmallVector<GlobalValue *, 4> Kept;
  for (Function &F : M)
    if (!F.isDeclaration() && S->Functions.isFromFile(F.getName())) {
      F.removeFnAttr(Attribute::AlwaysInline);
      F.addFnAttr(Attribute::NoInline);
      Kept.push_back(&F);
    }
  appendToCompilerUsed(M, Kept);
  return !Kept.empty();
}

/// Why \p F is left alone, or null.
const char *whySkipped(const Function &F) {
  if (F.hasFnAttribute(Attribute::Naked))
    return "a naked function has no frame to work in";
  if (F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation))
    return "its source asks not to be instrumented (disable_sanitizer_instrumentation)";
  if (F.isPresplitCoroutine())
    return "it is a coroutine that has not been split";
  if (F.hasPersonalityFn() && isFuncletEHPersonality(classifyEHPersonality(F.getPersonalityFn())))
    return "exceptions handled in funclets are not supported";
  if (F.getCallingConv() == CallingConv::GHC || F.getCallingConv() == CallingConv::X86_INTR)
    return "its calling convention leaves no room for a recorder";
  return nullptr;
}

/// Resolvers run before the image is relocated.
SmallPtrSet<const Function *, 4> resolvers(const Module &M) {
  SmallPtrSet<const Function *, 4> Found;
  for (const GlobalIFunc &I : M.ifuncs())
    Found.insert(I.getResolverFunction());
  return Found;
}

/// Returns whether part of \p M has no debug information of variables and types. An optimising link
/// makes one module of many units, and Rust's own library comes without it.
bool isNameless(const Module &M) {
  const auto Units = M.debug_compile_units();
  return Units.empty() || any_of(Units, [](const DICompileUnit *Unit) {
           return Unit->getEmissionKind() != DICompileUnit::FullDebug &&
                  !Unit->getDirectory().starts_with("/rustc/");
         });
}

/// Attributes that stop being true of a function that records.
void dropAttributes(Function &F) {
  F.addFnAttr(Mark);
  F.removeFnAttr(Attribute::Memory);
  F.removeFnAttr(Attribute::NoSync);
  F.removeFnAttr(Attribute::Speculatable);
}

/// Reports a mistake of ours with the function's name, where a release build of clang would crash
/// later.
void verify(const Function &F) {
  std::string Why;
  raw_string_ostream Stream(Why);
  if (verifyFunction(F, &Stream))
    F.getContext().emitError("memlode made invalid code of '" + F.getName() + "', a bug in memlode: " + Why);
}

/// Returns whether \p F is invalid code before our pass: compilers have bugs that the code
/// generator tolerates.
bool isBroken(const Function &F) { return verifyFunction(F); }

/// Returns whether a plan of \p F would be of use.
bool isWorthRecording(Function &F, const Finder &Accesses, const TargetLibraryInfo &TLI) {
  return !Accesses.parameters(F).empty() || any_of(instructions(F), [&](Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    return (Call && !isa<CallBrInst>(Call) && isWorthAFrame(*Call, TLI)) ||
           !Accesses.find(I).Accesses.empty();
  });
}

/// Reports that \p F is left uninstrumented.
void leave(const Function &F, const char *Why, Image &Into, OptimizationRemarkEmitter &Remarks) {
  ++NumSkippedFunctions;
  if (!F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation))
    Into.table().leaveOut(MEMLODE_LEFT_OUT_FUNCTION);
  Remarks.emit([&] {
    return OptimizationRemarkMissed(DEBUG_TYPE, "Function", F.getSubprogram(), &F.getEntryBlock())
           << "function not recorded: " << Why;
  });
}

Versions sidesOf(Function &F, Form Size, FunctionAnalysisManager &FAM, const RepeatedLoops &Repeats,
                 OptimizationRemarkEmitter &Remarks) {
  const char *Why =
      Size == Form::Full ? whySingle(F) : "it is so large that two versions would take too long to compile";
  if (Why) {
    Remarks.emit([&] {
      return OptimizationRemarkMissed(DEBUG_TYPE, "SingleVersion", F.getSubprogram(), &F.getEntryBlock())
             << "function records as slowly when recording is off: " << Why;
    });
    return {};
  }
  Versions Sides = makeVersions(F, FAM.getResult<DominatorTreeAnalysis>(F), FAM.getResult<LoopAnalysis>(F),
                                FAM.getResult<ScalarEvolutionAnalysis>(F), Repeats);
  FAM.invalidate(F, PreservedAnalyses::none());
  return Sides;
}

bool InstrumentPass::instrument(Function &F, Form Size, FunctionAnalysisManager &FAM, Image &Into,
                                const Frugal &Callees, const SkippedFunctions &Skipped, HiddenCalls &Hidden,
                                DormantCalls &Calls, const AwaitedMemory &Awaited, const LibcBlocks &Blocks) {
  if (prepare(F))
    FAM.invalidate(F, PreservedAnalyses::none());
  auto &Remarks = FAM.getResult<OptimizationRemarkEmitterAnalysis>(F);
  if (isBroken(F)) {
    leave(F, "the compiler has made code of it that LLVM's verifier refuses", Into, Remarks);
    return false;
  }
  const DataLayout &DL = F.getParent()->getDataLayout();
  const auto &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
  const bool AsWritten = S->Asked.To == Options::Fidelity::Source;
  LibraryRanges Ranges;
  IntrinsicRanges Operands;
  const Finder Accesses(F, TLI, Ranges, Operands, AsWritten ? registersOf(F) : Registers());
  Describer Sites(S->Names, Into.table(), S->Wanted, F);
  Sites.learn(Accesses, S->Functions, Blocks);
  const auto How = S->Asked.How;
  // Code as written is optimised later: that would make one of two sides, or undo the other.
  const bool Twice =
      S->Asked.Versions && How != Options::Mode::Call && How != Options::Mode::Words && !AsWritten;
  const Polls Looks = findPolls(F, Accesses, FAM);
  RepeatedLoops Repeats;
  if (S->Asked.Derive && How != Options::Mode::Call && !AsWritten && !Sites.takesValues())
    Repeats = findRepeats(Accesses, FAM.getResult<DominatorTreeAnalysis>(F), FAM.getResult<LoopAnalysis>(F),
                          FAM.getResult<ScalarEvolutionAnalysis>(F));
  const Versions Sides =
      Twice && isWorthRecording(F, Accesses, TLI) ? sidesOf(F, Size, FAM, Repeats, Remarks) : Versions();
  bool Opened = Hidden.open(F, Sides.Dormant, TLI);
  Opened |= Ranges.compute(F, Sides.Dormant);
  Opened |= Operands.compute(F, Sides.Dormant);
  if (Opened)
    FAM.invalidate(F, PreservedAnalyses::none());
  StampBlocks Stamped;
  if (S->Asked.Stamps && How != Options::Mode::Words && !Repeats.empty())
    Stamped = makeStampBlocks(F, Sides, Repeats, FAM);
  if (!Stamped.empty())
    FAM.invalidate(F, PreservedAnalyses::none());
  Plan P = Planner(F, Sides, Accesses, S->Functions, Blocks, TLI, Sites, Remarks, S->Asked.Stamps, Stamped,
                   Looks, Awaited)
               .plan();
  if (!P.Useful) {
    dropDormant(F, Sides); // the filter leaves nothing
    return false;
  }
  countInstructions(P, {FAM.getResult<BlockFrequencyAnalysis>(F), FAM.getResult<BranchProbabilityAnalysis>(F),
                        FAM.getResult<LoopAnalysis>(F), FAM.getResult<ScalarEvolutionAnalysis>(F),
                        FAM.getResult<TargetIRAnalysis>(F)});
  findFeeds(P, FAM.getResult<LoopAnalysis>(F), FAM.getResult<DominatorTreeAnalysis>(F));
  // Both add segments, and calls are told by the last one in front of them.
  if (How != Options::Mode::Call)
    findUnrecorded(P, Accesses, S->Functions, Skipped, TLI);
  if (Sites.frames() && How != Options::Mode::Call)
    findCalls(P, Callees, TLI);

  if (How == Options::Mode::Call || How == Options::Mode::Both)
    emitCalls(F, P, Into);
  if (How != Options::Mode::Call) {
    if (!Repeats.empty())
      hoistRepeats(P, FAM.getResult<LoopAnalysis>(F), FAM.getResult<ScalarEvolutionAnalysis>(F),
                   FAM.getResult<TargetIRAnalysis>(F));
    if (S->Asked.Derive)
      derive(P, DL, FAM.getResult<ScalarEvolutionAnalysis>(F), FAM.getResult<LoopAnalysis>(F));
    placeRoomTests(P);
    dropCleanCommits(P);
    Calls.note(F, Sides, TLI);
    if (How == Options::Mode::Words)
      emitWords(F, P, Into);
    else
      emitStream(F, Sides, P, Into, /*Briefly=*/Twice && Size == Form::Brief);
  }
  dropAttributes(F);
  verify(F);
  for (Function *Other : {Sides.Apart, Sides.Front, Sides.Ask})
    if (Other) {
      dropAttributes(*Other);
      verify(*Other);
    }
  if (AsWritten)
    keepThroughOptimisation(F);
  FAM.invalidate(F, PreservedAnalyses::none());
  return true;
}

bool InstrumentPass::isHere(Module &M) const {
  const bool AsWritten = S->Asked.To == Options::Fidelity::Source;
  if (Where != Place::End || !AsWritten)
    return Where != Place::Start || AsWritten;
  if (!isAsWritten(M))
    M.getContext().emitError(
        "memlode: MEMLODE_FIDELITY is 'source', but " + M.getModuleIdentifier() +
        " has been optimised already: give the plug-in to the compiler, not to the linker");
  return false;
}

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &MAM) {
  if (!S->ready(M) || !isHere(M))
    return PreservedAnalyses::all();
  const bool AsWritten = S->Asked.To == Options::Fidelity::Source;
  if (AsWritten)
    inlineDemanded(M, MAM);
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  const auto Resolvers = resolvers(M);

  const auto libraryOf = [&FAM](Function &F) -> const TargetLibraryInfo & {
    return FAM.getResult<TargetLibraryAnalysis>(F);
  };
  separateTransfers(M, libraryOf);
  SmallVector<Function *, 64> Functions;
  for (Function &F : M)
    if (!F.isDeclaration() && !F.hasAvailableExternallyLinkage() && !F.hasFnAttribute(Mark))
      Functions.push_back(&F);

  S->Wanted.beginModule();
  S->Functions.beginModule();
  Image Into(M);
  if (AsWritten) {
    markAsWritten(M);
    Into.table().mark(MEMLODE_TABLE_FLAG_AS_WRITTEN);
  }
  DormantCalls Calls(M, libraryOf);
  HiddenCalls Hidden(M);
  const Frugal Callees(M, S->Functions, libraryOf);
  const CompileCosts Costs(Functions, FAM);
  AwaitedMemory Awaited;
  const LibraryRanges NoRanges;
  const IntrinsicRanges NoOperands;
  for (Function *F : Functions)
    Awaited.add(
        findPolls(*F, Finder(*F, FAM.getResult<TargetLibraryAnalysis>(*F), NoRanges, NoOperands), FAM));
  SkippedFunctions Skipped;
  for (Function *F : Functions)
    if (const char *Why =
            Resolvers.contains(F) ? "it resolves an ifunc before the image is relocated" : whySkipped(*F))
      Skipped.try_emplace(F, Why);
  SmallVector<Function *, 64> Recorded;
  copy_if(Functions, std::back_inserter(Recorded), [&](Function *F) { return !Skipped.contains(F); });
  openHeldAllocators(M, Recorded, S->Functions.fromFile(), FAM);
  LibcBlocks Blocks;
  Blocks.open(M, Recorded, FAM);
  CompiledFunctions Compiled;
  for (Function *F : Functions) {
    const char *Why = Skipped.lookup(F);
    if (Why) {
      leave(*F, Why, Into, FAM.getResult<OptimizationRemarkEmitterAnalysis>(*F));
      continue;
    }
    Compiled.insert(F);
    NumFunctions +=
        instrument(*F, Costs.formOf(*F), FAM, Into, Callees, Skipped, Hidden, Calls, Awaited, Blocks);
  }
  Calls.redirect();
  markOwnDefinitions(M);
  S->Wanted.tell(Into.table());
  S->Functions.tell(Into.table());
  if (isNameless(M))
    Into.table().mark(MEMLODE_TABLE_FLAG_NAMELESS);
  if (!Into.table().empty())
    TypeBook(S->Names.types(M), S->Names.memberUses(), Into.table()).write(M);
  Into.finish(Compiled);
  listFunctions(M);
  // Even a function with nothing to record may have been brought into form.
  return PreservedAnalyses::none();
}

void registerCallbacks(PassBuilder &PB) {
  // Time stamps are inline assembly, which flang has no parser for by itself.
  InitializeNativeTargetAsmParser();
  auto S = std::make_shared<Session>();
  using Place = InstrumentPass::Place;
  PB.registerPipelineStartEPCallback([S](ModulePassManager &MPM, OptimizationLevel) {
    MPM.addPass(RememberPass(S));
    MPM.addPass(InstrumentPass(S, Place::Start));
  });
  atThinLinkStart(PB, [S](ModulePassManager &MPM) { MPM.addPass(RememberPass(S)); });
  atOptimizerLast(PB, [S](ModulePassManager &MPM) { MPM.addPass(InstrumentPass(S, Place::End)); });
  PB.registerFullLinkTimeOptimizationLastEPCallback(
      [S](ModulePassManager &MPM, OptimizationLevel) { MPM.addPass(InstrumentPass(S, Place::End)); });
  PB.registerPipelineParsingCallback(
      [S](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == "memlode-names")
          MPM.addPass(RememberPass(S));
        else if (Name == "memlode")
          MPM.addPass(InstrumentPass(S, Place::ByHand));
        else
          return false;
        return true;
      });
}

} // namespace

} // namespace memlode

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "memlode", "1", memlode::registerCallbacks};
}
