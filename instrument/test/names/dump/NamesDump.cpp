//===- NamesDump.cpp - prints the name of every access, for tests ---------===//
//
// A plug-in beside the real one: it changes nothing, and at the end of optimisation writes a line for each
// access,
//
//   function: file:line:col[~] read|write|both|alloc BYTES VARIABLE : TYPE . MEMBER (evidence)
//
// to the file named by MEMLODE_NAMES_DUMP, or to standard error. `-` stands for what is not known.
//
//===----------------------------------------------------------------------===//
#include "LlvmCompat.h"
#include "names/Names.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;
using namespace memlode;

namespace {

constexpr const char *Evidence[] = {"none", "source", "debug", "tbaa", "partial"};

void print(raw_ostream &OS, const Function &F, StringRef Direction, uint64_t Bytes, const Name &N) {
  auto orDash = [](StringRef S) { return S.empty() ? StringRef("-") : S; };
  OS << F.getName() << ": ";
  if (N.Location)
    OS << sys::path::filename(N.Location->getFilename()) << ":" << N.Location->getLine() << ":"
       << N.Location->getColumn() << (N.Approximate ? "~" : "");
  else
    OS << "-";
  OS << " " << Direction << " " << Bytes << " " << orDash(N.Variable) << " : " << orDash(N.Type) << " . "
     << orDash(N.Member) << " (" << Evidence[N.Evidence] << ")\n";
}

class Dump : public PassInfoMixin<Dump> {
public:
  explicit Dump(std::shared_ptr<NameBook> Book) : Book(std::move(Book)) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    std::optional<raw_fd_ostream> File;
    if (auto Path = sys::Process::GetEnv("MEMLODE_NAMES_DUMP")) {
      std::error_code Error;
      File.emplace(*Path, Error, sys::fs::OF_Append);
    }
    raw_ostream &OS = File ? *File : errs();
    for (Function &F : M)
      for (Instruction &I : instructions(F))
        access(OS, I);
    return PreservedAnalyses::all();
  }

  static bool isRequired() { return true; }

private:
  void access(raw_ostream &OS, Instruction &I) {
    const DataLayout &Layout = I.getModule()->getDataLayout();
    auto one = [&](Value *Pointer, Direction D, StringRef Word, uint64_t Bytes) {
      print(OS, *I.getFunction(), Word, Bytes, Book->nameOf(I, Pointer, D, Bytes));
    };
    auto bytes = [&](Type *T) { return Layout.getTypeStoreSize(T).getKnownMinValue(); };
    if (auto *L = dyn_cast<LoadInst>(&I)) {
      one(L->getPointerOperand(), Direction::Read, "read", bytes(L->getType()));
    } else if (auto *S = dyn_cast<StoreInst>(&I)) {
      one(S->getPointerOperand(), Direction::Write, "write", bytes(S->getValueOperand()->getType()));
    } else if (auto *R = dyn_cast<AtomicRMWInst>(&I)) {
      one(R->getPointerOperand(), Direction::Both, "both", bytes(R->getType()));
    } else if (auto *X = dyn_cast<AtomicCmpXchgInst>(&I)) {
      one(X->getPointerOperand(), Direction::Both, "both", bytes(X->getCompareOperand()->getType()));
    } else if (auto *MI = dyn_cast<MemIntrinsic>(&I)) {
      auto *Length = dyn_cast<ConstantInt>(MI->getLength());
      uint64_t Bytes = Length ? Length->getZExtValue() : 0;
      one(MI->getRawDest(), Direction::Write, "write", Bytes);
      if (auto *T = dyn_cast<MemTransferInst>(MI))
        one(T->getRawSource(), Direction::Read, "read", Bytes);
    } else if (auto *II = dyn_cast<IntrinsicInst>(&I)) {
      switch (II->getIntrinsicID()) {
      case Intrinsic::masked_load:
      case Intrinsic::masked_gather:
        one(maskedOperands(*II).Pointer, Direction::Read, "read", bytes(II->getType()->getScalarType()));
        break;
      case Intrinsic::masked_store:
      case Intrinsic::masked_scatter:
        one(maskedOperands(*II).Pointer, Direction::Write, "write",
            bytes(maskedOperands(*II).Stored->getType()->getScalarType()));
        break;
      default:
        break;
      }
    } else if (auto *C = dyn_cast<CallBase>(&I); C && C->hasRetAttr(Attribute::NoAlias)) {
      print(OS, *I.getFunction(), "alloc", 0, Book->nameOfAllocation(*C));
    }
  }

  std::shared_ptr<NameBook> Book;
};

class Remember : public PassInfoMixin<Remember> {
public:
  explicit Remember(std::shared_ptr<NameBook> Book) : Book(std::move(Book)) {}

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    Book->remember(M);
    return PreservedAnalyses::all();
  }

  static bool isRequired() { return true; }

private:
  std::shared_ptr<NameBook> Book;
};

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "memlode-names-dump", LLVM_VERSION_STRING, [](PassBuilder &PB) {
            auto Book = std::make_shared<NameBook>();
            // Without the first look, tests see what the walk over the optimised module finds alone.
            if (!sys::Process::GetEnv("MEMLODE_NAMES_FORGET"))
              PB.registerPipelineStartEPCallback(
                  [=](ModulePassManager &MPM, OptimizationLevel) { MPM.addPass(Remember(Book)); });
            atOptimizerLast(PB, [=](ModulePassManager &MPM) { MPM.addPass(Dump(Book)); });
            PB.registerPipelineParsingCallback(
                [=](StringRef Text, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
                  if (Text != "memlode-names-dump")
                    return false;
                  MPM.addPass(Dump(Book));
                  return true;
                });
          }};
}
