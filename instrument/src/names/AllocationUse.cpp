//===- AllocationUse.cpp --------------------------------------------------===//
#include "names/AllocationUse.h"
#include "names/AddressParts.h"
#include "names/Fortran.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace memlode {

namespace {

constexpr unsigned MaxAllocationUses = 64; ///< looked at for one allocation

/// The quality of a use as evidence of the type, best first.
enum Rank { FromSite, FromVariable, FromStore, FromThis, FromReturn, FromArgument, FromAccess, Nothing };

class Search {
public:
  Search(CallBase &Call, PointerWalk &Walk, TypeNames &Types) : Call(Call), Walk(Walk), Types(Types) {}

  /// The variable or member that \p Place is has the pointer.
  AllocationUse run(const Value &Place) {
    if (std::optional<Reading> R = Walk.read(&Place, pointer())) {
      const auto To = R->At.Indirect ? std::nullopt : TypeNames::pointee(R->Found.Leaf);
      offer(FromStore, To.value_or(nullptr), R->At.Text, R->Found.Member);
    }
    return Best;
  }

  AllocationUse run() {
    if (auto *Site = dyn_cast_or_null<DIType>(Call.getMetadata("heapallocsite")))
      offer(FromSite, Site);
    // Fortran's library stores the address in the descriptor that it is given.
    if (Call.getType()->isIntegerTy() && Call.arg_size() && Call.getArgOperand(0)->getType()->isPointerTy()) {
      described(Call.getArgOperand(0));
      return Best;
    }
    variables(&Call);
    push(&Call, 0);
    for (unsigned Seen = 0; !Work.empty() && Seen < MaxAllocationUses;) {
      auto [V, Offset] = Work.pop_back_val();
      for (Use &U : V->uses())
        if (Seen++ < MaxAllocationUses)
          look(U, Offset);
    }
    return Best;
  }

private:
  void push(Value *V, int64_t Offset) {
    if (Met.insert(V).second)
      Work.push_back({V, Offset});
  }

  /// \p Frames: the depth to which the code of the use is inlined. The program's own variables name
  /// the memory rather than those of library helpers.
  bool offer(Rank R, const DIType *Element, std::string Variable = "", std::string Member = "",
             unsigned Frames = 0) {
    Element = TypeNames::strip(Element);
    // Raw bytes are what every allocation is; they are an answer only when nothing better comes.
    if (!Element)
      R = Nothing;
    else if (auto *B = dyn_cast<DIBasicType>(Element); B && TypeNames::bytes(B) == 1)
      // Rust's `u8` is also its `void`: the library's vectors hold pointers to it whatever their elements
      // are.
      R = B->getName() == "u8" ? Nothing : std::max(R, FromArgument);
    unsigned N = Frames ? FromThis : R;
    if (!Variable.empty() &&
        (Best.Variable.empty() || N < NameRank || (N == NameRank && Frames < NameFrames))) {
      Best.Variable = std::move(Variable);
      Best.Member = std::move(Member);
      NameRank = N;
      NameFrames = Frames;
    }
    if (R >= TypeRank)
      return false;
    TypeRank = R;
    Best.Element = Element;
    Best.FromTag = R == FromAccess;
    return true;
  }

  /// Variables that hold the pointer. After inlining, those of constructors and library helpers
  /// hold it, too; the outermost frame is the program's own.
  void variables(const Value *V) {
    auto steps = [](const Place &P) {
      unsigned N = 0;
      for (const DILocation *L = P.Frame; L; L = L->getInlinedAt())
        ++N;
      return N;
    };
    const Place *Outermost = nullptr;
    for (const Place &P : Walk.places(V))
      if (P.Variable && P.Arrow && P.Offset == 0 && TypeNames::strip(P.Type) &&
          (!Outermost || steps(P) < steps(*Outermost)))
        Outermost = &P;
    if (Outermost)
      offer(Outermost->Text == "this" ? FromThis : FromVariable, Outermost->Type,
            Outermost->Text == "this" ? "" : Outermost->Text, "", steps(*Outermost));
  }

  void look(Use &U, int64_t Offset) {
    auto *I = dyn_cast<Instruction>(U.getUser());
    if (!I)
      return;
    if (isa<PHINode>(I) || isa<SelectInst>(I) || isa<FreezeInst>(I) || isa<BitCastInst>(I) ||
        isa<AddrSpaceCastInst>(I)) {
      if (Offset == 0)
        variables(I);
      push(I, Offset);
    } else if (auto *G = dyn_cast<GEPOperator>(I)) {
      AddressParts Parts = addressParts(*G, I->getModule()->getDataLayout());
      if (Offset == 0 && G->getPointerOperand() == U.get())
        if (auto *Record = Types.byStruct(dyn_cast<StructType>(G->getSourceElementType())))
          offer(FromAccess, Record);
      if (Parts.Strides.empty())
        push(I, Offset + Parts.Offset);
    } else if (auto *S = dyn_cast<StoreInst>(I)) {
      if (S->getValueOperand() == U.get() && Offset == 0)
        stored(*S);
      else if (S->getPointerOperand() == U.get())
        accessed(*S, Offset);
    } else if (isa<LoadInst>(I)) {
      accessed(*I, Offset);
    } else if (isa<ReturnInst>(I)) {
      const DISubprogram *SP = I->getFunction()->getSubprogram();
      DITypeRefArray Declared = SP && SP->getType() ? SP->getType()->getTypeArray() : DITypeRefArray();
      if (Offset == 0 && Declared && Declared.size())
        if (auto To = TypeNames::pointee(Declared[0]))
          offer(FromReturn, *To);
    } else if (auto *C = dyn_cast<CallBase>(I); C && C != &Call && C->isArgOperand(&U) && Offset == 0) {
      passed(*C, C->getArgOperandNo(&U));
    }
  }

  void stored(StoreInst &S) {
    std::optional<Reading> R = Walk.read(S.getPointerOperand(), shapeOf(S, 0, Types));
    if (!R)
      return;
    auto To = R->At.Indirect ? std::optional<const DIType *>() : TypeNames::pointee(R->Found.Leaf);
    StringRef Member = R->Found.Member;
    if (Member.consume_back(DescriptorData))
      Member = Member.rtrim('.');
    if (R->Found.Element) { // a vector's buffer goes by the vector's name
      To = R->Found.Element;
      if (Member.consume_back(RustBuffer))
        Member = Member.rtrim('.');
    }
    offer(FromStore, To.value_or(nullptr), R->At.Text, Member.str());
    // The variable's own slot, before optimisation: what is loaded from it again is the memory too.
    if (isa<AllocaInst>(S.getPointerOperand()) && R->Found.Member.empty())
      for (User *U : S.getPointerOperand()->users())
        if (auto *L = dyn_cast<LoadInst>(U); L && !To.value_or(nullptr))
          push(L, 0);
  }

  /// An access of a pointer, by the call.
  AccessShape pointer() const {
    AccessShape Data;
    Data.I = &Call;
    Data.Bytes = Data.ElementBytes = 8;
    Data.Kind = ValueKind::Pointer;
    return Data;
  }

  void described(const Value *Descriptor) {
    std::optional<Reading> R = Walk.read(Descriptor, pointer());
    StringRef Member = R ? StringRef(R->Found.Member) : "";
    if (Member.consume_back(DescriptorData))
      if (auto To = TypeNames::pointee(R->Found.Leaf))
        offer(FromStore, *To, R->At.Text, Member.rtrim('.').str());
  }

  void accessed(const Instruction &I, int64_t Offset) {
    AccessShape A = shapeOf(I, 0, Types);
    if (A.TagRecord && static_cast<int64_t>(A.Tag.Offset) == Offset)
      offer(FromAccess, A.TagRecord);
  }

  void passed(const CallBase &C, unsigned Position) {
    const Function *Callee = C.getCalledFunction();
    const DISubprogram *SP = Callee ? Callee->getSubprogram() : nullptr;
    DITypeRefArray Declared = SP && SP->getType() ? SP->getType()->getTypeArray() : DITypeRefArray();
    if (!Declared || Declared.size() != C.arg_size() + 1)
      return;
    const DIType *Parameter = Declared[Position + 1];
    if (auto To = TypeNames::pointee(Parameter)) {
      bool This = Position == 0 && Parameter->isArtificial();
      offer(This ? FromThis : FromArgument, *To);
    }
  }

  CallBase &Call;
  PointerWalk &Walk;
  TypeNames &Types;
  AllocationUse Best;
  unsigned TypeRank = Nothing, NameRank = Nothing, NameFrames = 0;
  SmallVector<std::pair<Value *, int64_t>, 16> Work;
  SmallPtrSet<Value *, 16> Met;
};

} // namespace

AllocationUse useOf(CallBase &Call, PointerWalk &Walk, TypeNames &Types) {
  return Search(Call, Walk, Types).run();
}

AllocationUse useOf(CallBase &Call, Value &Place, PointerWalk &Walk, TypeNames &Types) {
  return Search(Call, Walk, Types).run(Place);
}

} // namespace memlode
