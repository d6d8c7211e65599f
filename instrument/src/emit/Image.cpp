//===- Image.cpp - table, anchors and constructor of a module -------------===//

#include "emit/Emit.h"

#include "memlode_format.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace memlode {

/// Stands for the table until its size is known.
GlobalVariable *Image::placeholder() {
  if (!TableVariable)
    TableVariable = new GlobalVariable(M, Type::getInt8Ty(M.getContext()), /*isConstant=*/true,
                                       GlobalValue::ExternalLinkage, nullptr, "memlode.table.forward");
  // Local from the start, so that anchors need no relocation at load time.
  TableVariable->setDSOLocal(true);
  return TableVariable;
}

/// The name that other units call \p Named by.
static StringRef linkedAs(const GlobalValue &Named) {
  return GlobalValue::dropLLVMManglingEscape(Named.getName());
}

GlobalVariable *Image::anchors(Function &F, const std::vector<Segment> &Segments) {
  LLVMContext &Ctx = M.getContext();
  Type *I32 = Type::getInt32Ty(Ctx);
  Type *I64 = Type::getInt64Ty(Ctx);
  StructType *Anchor = StructType::get(I32, I32);
  ArrayType *Array = ArrayType::get(Anchor, Segments.size());

  auto *Anchors = new GlobalVariable(M, Array, /*isConstant=*/true, GlobalValue::PrivateLinkage, nullptr,
                                     "memlode.anchors." + F.getName());
  Anchors->setSection(MEMLODE_SECTION_ANCHORS);
  Anchors->setAlignment(Align(MEMLODE_STREAM_ANCHOR_BYTES));
  Anchors->setDSOLocal(true);
  // They live and die with the copy of the function that the linker keeps.
  if (Comdat *Group = F.getComdat())
    Anchors->setComdat(Group);

  const uint32_t Function = Sites.function(F);
  SmallVector<Constant *, 16> Elements;
  std::optional<uint32_t> First;
  for (const Segment &S : Segments) {
    SmallString<64> Ops;
    for (const Op &O : S.Ops)
      O.encode(Ops);
    const uint32_t Index = Sites.segment(Function, S.Ops.size(), Ops);
    First = First.value_or(Index);

    Constant *Position[] = {ConstantInt::get(I64, 0), ConstantInt::get(I64, Elements.size())};
    Constant *Self = ConstantExpr::getInBoundsGetElementPtr(Array, Anchors, Position);
    Constant *Distance = ConstantExpr::getSub(ConstantExpr::getPtrToInt(placeholder(), I64),
                                              ConstantExpr::getPtrToInt(Self, I64));
    Elements.push_back(
        ConstantStruct::get(Anchor, ConstantExpr::getTrunc(Distance, I32), ConstantInt::get(I32, Index)));
  }
  Anchors->setInitializer(ConstantArray::get(Array, Elements));
  work(Segments, First.value_or(0));
  calls(Segments, First.value_or(0));
  unrecorded(Segments, First.value_or(0));
  if (Sites.linkageName(F) == Sites.string(linkedAs(F)))
    Told.insert(linkedAs(F));
  return Anchors;
}

void Image::unrecorded(const std::vector<Segment> &Segments, uint32_t First) {
  for (uint32_t S = 0; S < Segments.size(); ++S) {
    if (Segments[S].Beside.empty())
      continue;
    TableList::Bytes Entry;
    putVarint(Entry, First + S);
    putVarint(Entry, Segments[S].Beside.size());
    for (const Unrecorded &U : Segments[S].Beside) {
      const DILocation *Line = U.Where->getDebugLoc().get();
      Entry.push_back(static_cast<char>(U.Reason));
      putVarint(Entry, Line ? Sites.location(*Line) + 1 : 0);
      putVarint(Entry, U.Callee.empty() ? 0 : Sites.string(U.Callee) + 1);
    }
    Beside.append(Entry);
  }
}

/// A call of a function that no table names is taken for one of a function that memlode did not compile.
void Image::silent(const CompiledFunctions &Compiled) {
  const auto name = [&](const GlobalValue &Named) {
    if (Named.hasLocalLinkage() || Named.hasAvailableExternallyLinkage() || Told.contains(linkedAs(Named)))
      return;
    TableList::Bytes Entry;
    putVarint(Entry, Sites.string(linkedAs(Named)));
    Silent.add(Entry);
  };
  for (const Function *F : Compiled)
    name(*F);
  for (const GlobalAlias &A : M.aliases())
    if (Compiled.contains(dyn_cast_or_null<Function>(A.getAliaseeObject())))
      name(A);
  for (const GlobalIFunc &I : M.ifuncs())
    name(I);
}

void Image::calls(const std::vector<Segment> &Segments, uint32_t First) {
  for (uint32_t S = 0; S < Segments.size(); ++S) {
    // Where a call does not return, its line is of little use, and there may be many.
    SetVector<std::tuple<uint32_t, uint32_t, uint8_t>> Found;
    for (auto [Call, IsExact] : Segments[S].Calls) {
      const DILocation *Line = Call->doesNotReturn() ? nullptr : Call->getDebugLoc().get();
      const llvm::Function *Callee = Line ? Call->getCalledFunction() : nullptr;
      Found.insert({Line ? Sites.location(*Line) + 1 : 0, Callee ? Sites.linkageName(*Callee) + 1 : 0,
                    IsExact ? MEMLODE_CALL_FLAG_EXACT : 0});
    }
    if (Found.empty())
      continue;
    TableList::Bytes Entry;
    putVarint(Entry, First + S);
    putVarint(Entry, Found.size());
    for (auto [Location, Name, Flags] : Found) {
      putVarint(Entry, Location);
      putVarint(Entry, Name);
      Entry.push_back(static_cast<char>(Flags));
    }
    Calling.append(Entry);
  }
}

void Image::fileEarlier(const Op &Here, uint32_t Segment, unsigned Number) {
  SmallVector<uint64_t, 4> Marked;
  uint64_t Place = 0;
  for (const Feeds *Of : {&Here.AddressFeeds, &Here.DataFeeds, &Here.BranchFeeds})
    for (const auto &Group : *Of)
      for (const Feed &From : Group) {
        if (From.IsEarlier)
          Marked.push_back(Place);
        ++Place;
      }
  if (Marked.empty())
    return;
  TableList::Bytes Entry;
  for (const uint64_t Value : {uint64_t(Segment), uint64_t(Number), uint64_t(Marked.size())})
    putVarint(Entry, Value);
  for (const uint64_t Value : Marked)
    putVarint(Entry, Value);
  Earlier.append(Entry);
}

void Image::work(const std::vector<Segment> &Segments, uint32_t First) {
  DenseMap<const Instruction *, std::pair<uint32_t, unsigned>> Loads;
  for (uint32_t S = 0; S < Segments.size(); ++S)
    for (unsigned O = 0; O < Segments[S].Ops.size(); ++O)
      if (const Instruction *Of = Segments[S].Ops[O].Of)
        Loads.try_emplace(Of, S, O);
  const auto groups = [&](const Feeds &Of, uint32_t Here, TableList::Bytes &Out) {
    putVarint(Out, Of.size());
    for (const auto &Group : Of) {
      putVarint(Out, Group.size());
      for (const Feed &From : Group) {
        const auto [Segment, Op] = Loads.at(From.Load);
        putSigned(Out, static_cast<int64_t>(Here) - Segment);
        putVarint(Out, Op);
      }
    }
  };
  for (uint32_t S = 0; S < Segments.size(); ++S) {
    TableList::Bytes Counts;
    for (unsigned O = 0; O < Segments[S].Ops.size(); ++O) {
      const Op &Here = Segments[S].Ops[O];
      putVarint(Counts, Here.Instructions);
      fileEarlier(Here, First + S, O);
      if (Here.BranchesElsewhere || !Here.BranchFeeds.empty()) {
        TableList::Bytes Entry;
        putVarint(Entry, First + S);
        putVarint(Entry, O);
        groups(Here.BranchFeeds, S, Entry);
        Branching.append(Entry);
      }
      if (Here.AddressFeeds.empty() && Here.DataFeeds.empty())
        continue;
      TableList::Bytes Entry;
      putVarint(Entry, First + S);
      putVarint(Entry, O);
      groups(Here.AddressFeeds, S, Entry);
      groups(Here.DataFeeds, S, Entry);
      Feeding.append(Entry);
    }
    putVarint(Counts, Segments[S].Rest);
    Instructions.append(Counts);
  }
}

/// A reader finds a table by its anchors. A table without recorded segments needs one that is never
/// executed.
void Image::anchorForMarks() {
  const auto Body = find_if(M, [](const Function &F) { return !F.isDeclaration(); });
  if (Body != M.end())
    appendToUsed(M, {anchors(*Body, std::vector<Segment>(1))});
}

void Image::finish(const CompiledFunctions &Compiled) {
  silent(Compiled);
  if (!TableVariable && ((Sites.marks() & MEMLODE_TABLE_FLAG_FILTERED) || Sites.leavesOut() ||
                         Sites.hasAsked() || Silent.size() != 0))
    anchorForMarks();
  if (!TableVariable)
    return;
  for (auto [What, List] : {std::pair(MEMLODE_TABLE_SECTION_INSTRUCTIONS, &Instructions),
                            std::pair(MEMLODE_TABLE_SECTION_FEEDS, &Feeding),
                            std::pair(MEMLODE_TABLE_SECTION_BRANCHES, &Branching),
                            std::pair(MEMLODE_TABLE_SECTION_EARLIER, &Earlier),
                            std::pair(MEMLODE_TABLE_SECTION_CALLS, &Calling)}) {
    std::string Section;
    List->write(Section);
    Sites.section(What, Section);
  }
  if (const auto Units = M.debug_compile_units(); Units.begin() != Units.end())
    Sites.compiledIn(Units.begin()->getDirectory());
  std::string Unseen;
  Beside.write(Unseen);
  std::string Names;
  Silent.write(Names);
  Sites.section(MEMLODE_TABLE_SECTION_UNRECORDED, Unseen + Names);
  Constant *Bytes = ConstantDataArray::getString(M.getContext(), Sites.write(), /*AddNull=*/false);
  auto *Written = new GlobalVariable(M, Bytes->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage,
                                     Bytes, "memlode.table");
  Written->setSection(MEMLODE_SECTION_TABLES);
  Written->setAlignment(Align(8));
  Written->setDSOLocal(true);
  TableVariable->replaceAllUsesWith(Written);
  TableVariable->eraseFromParent();
  TableVariable = nullptr;
  announce();
}

/// One constructor per image: every module has it, the linker keeps one. The version in its name
/// lets modules of two versions each have their own, which then checks the recorder's version.
void Image::announce() {
  LLVMContext &Ctx = M.getContext();
  Type *Void = Type::getVoidTy(Ctx);
  Type *Pointer = PointerType::getUnqual(Ctx);
  if (M.getFunction("__memlode_image_load_1"))
    return;

  const auto make = [&](StringRef Name, StringRef Tell, bool Checks) {
    Function *F = Function::Create(FunctionType::get(Void, false), GlobalValue::LinkOnceODRLinkage, Name, M);
    F->setVisibility(GlobalValue::HiddenVisibility);
    F->setDSOLocal(true);
    F->setComdat(M.getOrInsertComdat(Name));
    F->addFnAttr(Attribute::DisableSanitizerInstrumentation);
    F->addFnAttr(Attribute::NoUnwind);
    IRBuilder<> B(BasicBlock::Create(Ctx, "", F));
    if (Checks)
      B.CreateLoad(B.getInt8Ty(), M.getOrInsertGlobal("__memlode_abi_2_link_with_memlode_cc", B.getInt8Ty()),
                   /*isVolatile=*/true);
    B.CreateCall(M.getOrInsertFunction(Tell, Void, Pointer), {F});
    B.CreateRetVoid();
    return F;
  };
  // Before the module's own constructors and after its destructors.
  Function *Load = make("__memlode_image_load_1", "__memlode_module_load", true);
  Function *Unload = make("__memlode_image_unload_1", "__memlode_module_unload", false);
  appendToGlobalCtors(M, Load, 0, Load);
  appendToGlobalDtors(M, Unload, 0, Unload);
}

} // namespace memlode
