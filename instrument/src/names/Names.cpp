//===- Names.cpp ----------------------------------------------------------===//
#include "names/Names.h"
#include "names/AllocationUse.h"
#include "names/Lines.h"
#include "names/MemberUses.h"
#include "names/PointerWalk.h"
#include "names/TypeNames.h"

#include "memlode_format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace memlode {

namespace {

/// The accesses seen at one place of the source before optimisation. The strings live as long as the book.
struct Entry {
  StringRef Variable, Type, Member;
  uint64_t TypeBytes;
  uint64_t Bytes;
  const MDNode *Tag;
  bool IsMemberTag;
  unsigned Evidence;

  bool sameName(const Entry &O) const {
    return Variable == O.Variable && Type == O.Type && Member == O.Member;
  }
};

Name nameFrom(const Entry &E) {
  Name N;
  N.Variable = E.Variable.str();
  N.Type = E.Type.str();
  N.TypeBytes = E.TypeBytes;
  N.Member = E.Member.str();
  N.Evidence = E.Evidence;
  return N;
}

/// The findings of a walk back from the pointer.
struct Walked {
  Name Found;
  StringRef Leaf;    ///< the type of the innermost object accessed
  bool Firm = false; ///< nothing was guessed and the access has the size and kind of Leaf
};

/// (scope, line and column and direction). Inlining keeps the scope node, so copies of a function share its
/// entries.
using Key = std::pair<const void *, uint64_t>;

constexpr unsigned AllocationKey = 3; ///< beside the three directions
constexpr size_t MaxMembers = 8;      ///< named for one access

Key keyOf(const DILocation &L, unsigned What) {
  const DILocalScope *Scope = L.getScope()->getNonLexicalBlockFileScope();
  return {Scope, uint64_t(L.getLine()) << 32 | uint64_t(L.getColumn() & 0xffffff) << 2 | What};
}

/// Member text for the pointer to the virtual table, which compilers spell in several ways.
std::string plainMember(std::string Member) {
  size_t At = Member.rfind("_vptr");
  return At == std::string::npos || (At && Member[At - 1] != '.') ? Member : Member.substr(0, At + 5);
}

} // namespace

struct NameBook::Impl {
  Module *M = nullptr;
  std::unique_ptr<TypeNames> Types;
  MemberUses Uses;
  DenseMap<Key, SmallVector<Entry, 1>> Filed;
  BumpPtrAllocator Memory;
  UniqueStringSaver Saver{Memory};

  Function *Current = nullptr;
  std::unique_ptr<PointerWalk> Walk;
  std::unique_ptr<Lines> Where;

  void open(Module &Asked);
  void enter(Function &F, bool AsWritten = false);
  void rememberFunction(Function &F);
  void file(Instruction &I, Value *Pointer, Direction D, uint64_t Bytes);
  void fileAllocation(CallBase &Call);
  void insert(const Key &K, Entry E);

  Walked walk(Value *Pointer, const AccessShape &A);
  Name decide(ArrayRef<Entry> Filed, const AccessShape &A, Value *Pointer);
  Name allocation(CallBase &Call);
  Name named(AllocationUse U);
  void held(Name &N, const AccessShape &A, Value *Pointer);
  bool scalar(Name &N, const AccessShape &A);
};

NameBook::NameBook() : P(std::make_unique<Impl>()) {}
NameBook::~NameBook() = default;

void NameBook::Impl::open(Module &Asked) {
  if (M == &Asked)
    return;
  M = &Asked;
  Types = std::make_unique<TypeNames>(Asked);
  Filed.clear();
  Uses = MemberUses();
  Current = nullptr;
  Walk.reset();
  Where.reset();
}

void NameBook::Impl::enter(Function &F, bool AsWritten) {
  open(*F.getParent());
  if (Current == &F)
    return;
  Current = &F;
  Walk = std::make_unique<PointerWalk>(F, *Types, AsWritten || F.hasOptNone());
  Where = std::make_unique<Lines>(F);
}

TypeNames &NameBook::types(Module &M) {
  P->open(M);
  return *P->Types;
}

const MemberUses &NameBook::memberUses() const { return P->Uses; }

void NameBook::forget() {
  P->Current = nullptr;
  P->Walk.reset();
  P->Where.reset();
}

//===- Before optimisation ------------------------------------------------===//

void NameBook::remember(Module &M) {
  P->M = nullptr; // a module remembered twice was changed in between
  P->open(M);
  for (Function &F : M)
    if (!F.isDeclaration() && F.getSubprogram())
      P->rememberFunction(F);
  forget(); // optimisation is about to change every function
}

void NameBook::Impl::rememberFunction(Function &F) {
  enter(F, true);
  Uses.remember(F, *Types);
  // Loads and stores of variables that will live in registers are gone soon, and share lines and columns with
  // accesses that stay: `a[i]` reads both `a` and its element at one column.
  SmallPtrSet<const Value *, 32> Registers;
  if (!F.hasOptNone())
    for (Instruction &I : instructions(F))
      if (auto *A = dyn_cast<AllocaInst>(&I); A && isAllocaPromotable(A))
        Registers.insert(A);
  const DataLayout &Layout = M->getDataLayout();
  for (Instruction &I : instructions(F)) {
    if (auto *L = dyn_cast<LoadInst>(&I)) {
      if (!Registers.contains(L->getPointerOperand()))
        file(I, L->getPointerOperand(), Direction::Read,
             Layout.getTypeStoreSize(L->getType()).getKnownMinValue());
    } else if (auto *S = dyn_cast<StoreInst>(&I)) {
      if (!Registers.contains(S->getPointerOperand()))
        file(I, S->getPointerOperand(), Direction::Write,
             Layout.getTypeStoreSize(S->getValueOperand()->getType()).getKnownMinValue());
    } else if (auto *R = dyn_cast<AtomicRMWInst>(&I)) {
      file(I, R->getPointerOperand(), Direction::Both, Layout.getTypeStoreSize(R->getType()));
    } else if (auto *X = dyn_cast<AtomicCmpXchgInst>(&I)) {
      file(I, X->getPointerOperand(), Direction::Both,
           Layout.getTypeStoreSize(X->getCompareOperand()->getType()));
    } else if (auto *MI = dyn_cast<MemIntrinsic>(&I)) {
      auto *Length = dyn_cast<ConstantInt>(MI->getLength());
      uint64_t Bytes = Length ? Length->getZExtValue() : 0;
      file(I, MI->getRawDest(), Direction::Write, Bytes);
      if (auto *T = dyn_cast<MemTransferInst>(MI))
        file(I, T->getRawSource(), Direction::Read, Bytes);
    } else if (auto *C = dyn_cast<CallBase>(&I); C && C->getType()->isPointerTy() && !isa<IntrinsicInst>(C)) {
      fileAllocation(*C);
    }
  }
}

void NameBook::Impl::insert(const Key &K, Entry E) {
  SmallVector<Entry, 1> &At = Filed[K];
  for (const Entry &Known : At)
    if (Known.sameName(E) && Known.Bytes == E.Bytes && Known.Tag == E.Tag)
      return;
  if (At.size() < 64) // a macro's worth of accesses; the walk tells them apart, or nothing does
    At.push_back(E);
}

void NameBook::Impl::file(Instruction &I, Value *Pointer, Direction D, uint64_t Bytes) {
  const DILocation *L = I.getDebugLoc().get();
  if (!L || !L->getLine())
    return;
  AccessShape A = shapeOf(I, Bytes, *Types);
  Name N = walk(Pointer, A).Found;
  if (N.Variable.empty() && N.Type.empty())
    return;
  bool TagOnly = N.Evidence == MEMLODE_EVIDENCE_TBAA && N.Variable.empty() && N.Member.empty();
  insert(keyOf(*L, static_cast<unsigned>(D)),
         {Saver.save(N.Variable), Saver.save(N.Type), Saver.save(N.Member), N.TypeBytes, Bytes,
          I.getMetadata(LLVMContext::MD_tbaa), A.Tag.isMember(),
          TagOnly ? N.Evidence : MEMLODE_EVIDENCE_SOURCE});
}

void NameBook::Impl::fileAllocation(CallBase &Call) {
  const DILocation *L = Call.getDebugLoc().get();
  // Only what returns untyped memory; anything else has a type of its own.
  const Function *Callee = Call.getCalledFunction();
  if (!L || !L->getLine() || (!Callee && !Call.isIndirectCall()))
    return;
  if (Callee && !Call.hasRetAttr(Attribute::NoAlias))
    if (const DISubprogram *SP = Callee->getSubprogram()) {
      DITypeRefArray Declared = SP->getType() ? SP->getType()->getTypeArray() : DITypeRefArray();
      auto To = Declared && Declared.size() ? TypeNames::pointee(Declared[0]) : std::nullopt;
      if (To && TypeNames::strip(*To))
        return;
    }
  Name N = allocation(Call);
  if (!N.Variable.empty() || !N.Type.empty())
    insert(keyOf(*L, AllocationKey), {Saver.save(N.Variable), Saver.save(N.Type), Saver.save(N.Member),
                                      N.TypeBytes, 0, nullptr, false, MEMLODE_EVIDENCE_SOURCE});
}

//===- After optimisation -------------------------------------------------===//

/// The type of a value that nothing else is known of; whether a variable gave it, not the alias tag.
bool NameBook::Impl::scalar(Name &N, const AccessShape &A) {
  bool FromVariable = false;
  if (A.Tag.isVTable()) {
    N.Type = "void *";
    N.Member = "_vptr";
    N.TypeBytes = A.ElementBytes;
    return false;
  }
  N.Type = A.Tag.scalarType();
  // C's tags say `int` for `unsigned` too, and copies have none: the variable that takes or gives the value
  // knows better.
  if (A.ElementBytes && A.Kind != ValueKind::Pointer)
    if (const DIType *T = Walk->typeOfValue(A)) {
      StringRef Plain = Types->name(T);
      Plain.consume_front("unsigned ");
      FromVariable = N.Type.empty() || N.Type == Plain;
      if (FromVariable)
        N.Type = Types->name(T).str();
    }
  N.TypeBytes = N.Type.empty() ? 0 : A.ElementBytes;
  return FromVariable;
}

Walked NameBook::Impl::walk(Value *Pointer, const AccessShape &A) {
  Walked W;
  Name &N = W.Found;
  std::optional<Reading> R = Walk->read(Pointer, A);
  if (!R) {
    bool FromVariable = scalar(N, A);
    N.Evidence = N.Type.empty() ? MEMLODE_EVIDENCE_PARTIAL
                 : FromVariable ? MEMLODE_EVIDENCE_DEBUG
                                : MEMLODE_EVIDENCE_TBAA;
    return W;
  }
  N.Variable = R->At.Text;
  N.Evidence = R->At.FromTag ? MEMLODE_EVIDENCE_TBAA : MEMLODE_EVIDENCE_DEBUG;
  if (R->At.Indirect) {
    N.Type = (Types->name(R->At.Type) + " *").str();
    N.TypeBytes = A.ElementBytes;
    return W;
  }
  const Landing &Found = R->Found;
  const DIType *Owner = Found.Owner;
  N.Member = plainMember(Found.Member);
  // Outside the object, and of another shape or tagged as no member of anything: what stands there is behind
  // the object (or the pointer was cast), and not another one of it.
  if (Found.Doubtful && Found.Plain && (!Found.Fits || (!A.Tag.isMember() && !A.Tag.scalarType().empty()))) {
    Owner = nullptr;
    N.Member.clear();
  }
  // Bytes that are read as something wider are an object of that type in a buffer.
  bool Buffer = !Owner || (N.Member.empty() && isa<DIBasicType>(Owner) && TypeNames::bytes(Owner) == 1);
  if (Buffer && (!Owner || A.ElementBytes > 1))
    scalar(N, A);
  if (N.Type.empty() && Owner) {
    N.Type = Types->name(Owner).str();
    N.TypeBytes = TypeNames::bytes(Owner);
  }
  // True on one of several paths is half a name.
  if (N.Type.empty() || R->At.Merged)
    N.Evidence = MEMLODE_EVIDENCE_PARTIAL;
  W.Firm = Found.isFirm() && !R->At.FromTag && !R->At.Merged;
  if (Found.Leaf)
    W.Leaf = Types->name(Found.Leaf);
  return W;
}

/// Types of libraries that hold one value: it goes by the name of the member that it is.
static bool isWrapper(StringRef Type) {
  static constexpr StringLiteral Prefixes[] = {"std::__atomic_",
                                               "std::atomic",
                                               "std::_Head_base<",
                                               "std::__uniq_ptr_",
                                               "std::__shared_ptr<",
                                               "std::__shared_count<",
                                               "std::__1::__cxx_atomic",
                                               "std::__1::__atomic",
                                               "std::__1::unique_ptr<",
                                               "std::__1::shared_ptr<",
                                               "core::sync::atomic::Atomic",
                                               "core::cell::UnsafeCell<"};
  return any_of(Prefixes, [&](StringRef Prefix) { return Type.starts_with(Prefix); });
}

/// A value in a wrapper goes by the member that holds the wrapper: `gate.waiting`, not
/// `std::atomic<long>._M_i`.
void NameBook::Impl::held(Name &N, const AccessShape &A, Value *Pointer) {
  if (N.Member.empty() || !isWrapper(N.Type))
    return;
  std::optional<Reading> R = Walk->holder(Pointer, A, N.Member);
  if (!R || !R->Found.Owner)
    return;
  StringRef Path = R->Found.Member;
  Path = Path.drop_back(N.Member.size()).rtrim('.');
  N.Type = Types->name(R->Found.Owner).str();
  N.TypeBytes = TypeNames::bytes(R->Found.Owner);
  N.Member = Path.str();
  if (N.Variable == "this" || N.Variable == "self" || N.Variable.empty())
    N.Variable = R->At.Text;
}

/// Joins the name remembered for the access's place in the source with the result of the walk.
Name NameBook::Impl::decide(ArrayRef<Entry> Filed, const AccessShape &A, Value *Pointer) {
  SmallVector<const Entry *, 8> Left;
  for (const Entry &E : Filed)
    Left.push_back(&E);
  auto keepIfAny = [&](auto Good) {
    if (any_of(Left, Good))
      erase_if(Left, [&](const Entry *E) { return !Good(E); });
  };
  const MDNode *Tag = A.I->getMetadata(LLVMContext::MD_tbaa);
  // Another member's tag is another access, whatever its line says.
  if (Tag && A.Tag.isMember())
    erase_if(Left, [&](const Entry *E) { return E->IsMemberTag && E->Tag != Tag; });
  if (Left.empty())
    return walk(Pointer, A).Found;
  if (Tag)
    keepIfAny([&](const Entry *E) { return E->Tag == Tag; });
  keepIfAny([&](const Entry *E) { return E->Bytes == A.Bytes; });

  const Entry &E = *Left.front();
  if (all_of(Left, [&](const Entry *O) { return O->sameName(E); })) {
    // A vector of array elements is as good as one of them; a vector of members is not.
    bool Elements =
        A.ElementBytes && E.Bytes == A.ElementBytes && (E.Member.empty() || E.Member.ends_with("[]"));
    if (E.Bytes == A.Bytes || Elements) {
      if (!E.Member.empty())
        return nameFrom(E);
      if (E.Type.empty()) { // a copy through `void *`, until its value was seen
        Name Known = nameFrom(E), Now = walk(Pointer, A).Found;
        Known.Type = std::move(Now.Type);
        Known.TypeBytes = Now.TypeBytes;
        return Known;
      }
      // A helper takes or returns a plain `int &`; inlined, it may be seen which member that is.
      Walked W = walk(Pointer, A);
      return W.Firm && !W.Found.Member.empty() && W.Leaf == E.Type ? W.Found : nameFrom(E);
    }
    // A copy split into its members, or neighbours merged into one access: the walk knows which part this is.
    Name N = walk(Pointer, A).Found;
    bool Merged = StringRef(N.Member).contains('|');
    if (N.Variable.empty() && N.Type == E.Type)
      N.Variable = E.Variable.str();
    return !N.Variable.empty() && !N.Type.empty() && (N.Type == E.Type || E.Bytes > A.Bytes || Merged)
               ? N
               : nameFrom(E);
  }

  Name N = walk(Pointer, A).Found;
  keepIfAny([&](const Entry *O) { return O->Type == N.Type && O->Member == N.Member; });
  keepIfAny([&](const Entry *O) { return O->Variable == N.Variable; });
  const Entry &Best = *Left.front();
  if (all_of(Left, [&](const Entry *O) { return O->Type == Best.Type && O->Member == Best.Member; }))
    return nameFrom(Best);
  // Several members of one type stand at this place and the walk cannot choose: it is one of them, or all at
  // once.
  bool OneType = all_of(Left, [&](const Entry *O) { return O->Type == Best.Type && !O->Member.empty(); });
  if (!OneType || !N.Member.empty() || Left.size() > MaxMembers)
    return N;
  Name All = nameFrom(Best);
  for (const Entry *O : drop_begin(Left)) {
    if (!is_contained(split(All.Member, '|'), O->Member))
      All.Member += "|" + O->Member.str();
    if (O->Variable != Best.Variable)
      All.Variable = N.Variable;
  }
  return All;
}

Name NameBook::nameOf(Instruction &I, Value *Pointer, Direction D, uint64_t Bytes) {
  P->enter(*I.getFunction());
  Lines::Line L = P->Where->of(I);
  AccessShape A = shapeOf(I, Bytes, *P->Types);
  auto Filed = P->Filed.end();
  if (L.At && !L.Approximate)
    Filed = P->Filed.find(keyOf(*L.At, static_cast<unsigned>(D)));
  Name N = Filed == P->Filed.end() ? P->walk(Pointer, A).Found : P->decide(Filed->second, A, Pointer);
  P->held(N, A, Pointer);
  N.Location = L.At;
  N.Approximate = L.Approximate;
  if (N.Variable.empty() && N.Type.empty() && !L.At)
    N.Evidence = MEMLODE_EVIDENCE_NONE;
  return N;
}

//===- Allocations --------------------------------------------------------===//

Name NameBook::Impl::allocation(CallBase &Call) { return named(useOf(Call, *Walk, *Types)); }

Name NameBook::Impl::named(AllocationUse U) {
  Name N;
  N.Variable = std::move(U.Variable);
  N.Member = std::move(U.Member);
  if (U.Element) {
    N.Type = Types->name(U.Element).str();
    N.TypeBytes = TypeNames::bytes(U.Element);
    N.Evidence = U.FromTag ? MEMLODE_EVIDENCE_TBAA : MEMLODE_EVIDENCE_DEBUG;
  } else {
    N.Evidence = MEMLODE_EVIDENCE_PARTIAL;
  }
  return N;
}

Name NameBook::nameOfAllocation(CallBase &Call) {
  P->enter(*Call.getFunction());
  Lines::Line L = P->Where->of(Call);
  Name N;
  if (L.At && !L.Approximate) {
    auto It = P->Filed.find(keyOf(*L.At, AllocationKey));
    if (It != P->Filed.end() && It->second.size() == 1) {
      N = nameFrom(It->second.front());
    }
  }
  // An allocator's wrapper has no type until it is inlined into its callers.
  if (N.Type.empty()) {
    Name Here = P->allocation(Call);
    if (!Here.Type.empty() || N.Variable.empty())
      N = std::move(Here);
  }
  N.Location = L.At;
  N.Approximate = L.Approximate;
  if (N.Variable.empty() && N.Type.empty() && !L.At)
    N.Evidence = MEMLODE_EVIDENCE_NONE;
  return N;
}

Name NameBook::nameOfBlock(CallBase &Call, Value &Place, bool IsInner) {
  P->enter(*Call.getFunction());
  AllocationUse U = useOf(Call, Place, *P->Walk, *P->Types);
  if (IsInner) {
    U.Variable += U.Member.empty() && !U.Variable.empty() ? "[]" : "";
    U.Member += U.Member.empty() ? "" : "[]";
    U.Element = TypeNames::strip(TypeNames::pointee(U.Element).value_or(nullptr));
  }
  Name N = P->named(std::move(U));
  const Lines::Line L = P->Where->of(Call);
  N.Location = L.At;
  N.Approximate = L.Approximate;
  return N;
}

} // namespace memlode
