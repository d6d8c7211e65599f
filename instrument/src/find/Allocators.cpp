//===- Allocators.cpp -----------------------------------------------------===//

#include "find/Allocators.h"
#include "describe/SiteTable.h"
#include "find/ByName.h"
#include "find/RustAllocator.h"
#include "prepare/HeldAllocators.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/GlobalValue.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace memlode {

namespace {

using Act = Allocator::Act;
using Failure = Allocator::Failure;
constexpr int NoArgument = Allocator::None;

struct AllocatorRow {
  const char *Names; ///< separated by spaces
  Allocator Does;
};

const AllocatorRow KnownAllocators[] = {
    {"malloc valloc pvalloc", {Act::Allocate, NoArgument, 0, NoArgument}},
    {"calloc", {Act::Allocate, 0, 1, NoArgument}},
    {"aligned_alloc memalign", {Act::Allocate, NoArgument, 1, NoArgument}},
    {"posix_memalign", {Act::Allocate, NoArgument, 2, 0, Failure::NonZeroStatus}},
    {"realloc", {Act::Resize, NoArgument, 1, 0}},
    {"reallocarray", {Act::Resize, 1, 2, 0}},
    {"strdup __strdup strndup __strndup",
     {Act::Allocate, NoArgument, NoArgument, NoArgument, Failure::Null, false, /*Text=*/true}},
    {"free cfree free_sized free_aligned_sized", {Act::Free, NoArgument, NoArgument, 0}},
    {"mmap mmap64", {Act::Allocate, NoArgument, 1, NoArgument, Failure::MapFailed}},
    {"mremap", {Act::Resize, NoArgument, 2, 0, Failure::MapFailed}},
    {"munmap", {Act::Unmap, NoArgument, 1, 0}},

    // operator new and new[]: plain, nothrow, aligned, both, and those with a hotness hint
    {"_Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t "
     "_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t _Znwm12__hot_cold_t "
     "_Znam12__hot_cold_t",
     {Act::Allocate, NoArgument, 0, NoArgument}},
    // operator delete and delete[]: plain, sized, aligned, nothrow
    {"_ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t "
     "_ZdaPvmSt11align_val_t _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_tRKSt9nothrow_t "
     "_ZdaPvSt11align_val_tRKSt9nothrow_t",
     {Act::Free, NoArgument, NoArgument, 0}},

    // Rust's default allocator and the program's own one; __rust_alloc and its kin only pass on to them and
    // are inlined (see RustAllocator.h).
    {"__rdl_alloc __rdl_alloc_zeroed __rg_alloc __rg_alloc_zeroed",
     {Act::Allocate, NoArgument, 0, NoArgument}},
    {"__rdl_realloc __rg_realloc", {Act::Resize, NoArgument, 3, 0}},
    {"__rdl_dealloc __rg_dealloc", {Act::Free, NoArgument, NoArgument, 0}},

    // mimalloc and jemalloc by their own names; `_rjem_` is jemalloc as Rust's crates have it
    {"mi_malloc mi_zalloc mi_malloc_small mi_zalloc_small mi_malloc_aligned mi_zalloc_aligned mi_valloc "
     "mi_pvalloc mi_new mi_new_nothrow mi_new_aligned mi_new_aligned_nothrow je_malloc je_valloc je_pvalloc "
     "mallocx je_mallocx _rjem_malloc _rjem_mallocx",
     {Act::Allocate, NoArgument, 0, NoArgument}},
    {"mi_calloc mi_mallocn mi_calloc_aligned mi_new_n je_calloc _rjem_calloc",
     {Act::Allocate, 0, 1, NoArgument}},
    {"mi_aligned_alloc mi_memalign je_aligned_alloc je_memalign _rjem_aligned_alloc _rjem_memalign",
     {Act::Allocate, NoArgument, 1, NoArgument}},
    {"mi_posix_memalign je_posix_memalign _rjem_posix_memalign",
     {Act::Allocate, NoArgument, 2, 0, Failure::NonZeroStatus}},
    {"mi_realloc mi_rezalloc mi_reallocf mi_realloc_aligned mi_rezalloc_aligned mi_new_realloc je_realloc "
     "rallocx "
     "je_rallocx _rjem_realloc _rjem_rallocx",
     {Act::Resize, NoArgument, 1, 0}},
    {"mi_reallocn mi_recalloc mi_recalloc_aligned mi_new_reallocn", {Act::Resize, 1, 2, 0}},
    {"mi_free mi_cfree mi_free_size mi_free_aligned mi_free_size_aligned je_free dallocx sdallocx je_dallocx "
     "je_sdallocx _rjem_free _rjem_dallocx _rjem_sdallocx",
     {Act::Free, NoArgument, NoArgument, 0}},

    // What `std::pmr` calls by a table of virtual functions (see HeldAllocators.h), by names that no function
    // has
    {"memory_resource::allocate", {Act::Allocate, NoArgument, 1, NoArgument}},
    {"memory_resource::deallocate", {Act::Free, NoArgument, NoArgument, 1}},

    // What flang's library does for allocate and deallocate; of intrinsic types it mostly calls malloc
    // itself.
    {"_FortranAAllocatableAllocate _FortranAAllocatableAllocateSource _FortranAPointerAllocate "
     "_FortranAPointerAllocateSource",
     {Act::Allocate, NoArgument, NoArgument, 0, Failure::NonZeroStatus, /*Described=*/true}},
    {"_FortranAAllocatableDeallocate _FortranAAllocatableDeallocatePolymorphic _FortranAPointerDeallocate "
     "_FortranAPointerDeallocatePolymorphic",
     {Act::Free, NoArgument, NoArgument, 0, Failure::Null, /*Described=*/true}},
};

bool isIntegerAt(const CallBase &Call, int Position) {
  if (Position == NoArgument)
    return true;
  return unsigned(Position) < Call.arg_size() && Call.getArgOperand(Position)->getType()->isIntegerTy() &&
         Call.getArgOperand(Position)->getType()->getIntegerBitWidth() <= 64;
}

bool isPointer(const Type *T) { return T->isPointerTy() && T->getPointerAddressSpace() == 0; }

bool fits(const CallBase &Call, const Allocator &A) {
  if (A.Text && !Call.getCalledFunction())
    return false;
  if (!isIntegerAt(Call, A.Count) || !isIntegerAt(Call, A.Size))
    return false;
  if (A.Base != NoArgument &&
      (unsigned(A.Base) >= Call.arg_size() || !isPointer(Call.getArgOperand(A.Base)->getType())))
    return false;
  const bool ReturnsBase = A.Does == Act::Resize || (A.Does == Act::Allocate && A.Base == NoArgument);
  if (ReturnsBase && !isPointer(Call.getType()))
    return false;
  return A.Fails != Failure::NonZeroStatus || Call.getType()->isIntegerTy();
}

struct Field {
  StringRef What;
  int Allocator::*Where;
};

Error lineError(const Twine &What) { return createStringError(inconvertibleErrorCode(), What); }

bool isPosition(StringRef Text) { return isDigit(Text[0]) || Text[0] == '-'; }

/// Reads an argument position; `-1` only where \p MayBeAbsent.
Expected<int> position(StringRef Text, StringRef What, bool MayBeAbsent) {
  int Value;
  if (Text.getAsInteger(10, Value) || Value > 255 || Value < (MayBeAbsent ? -1 : 0))
    return lineError(Twine("the position of the ") + What + " is '" + Text + "'; expected a number from " +
                     (MayBeAbsent ? "-1" : "0") + " to 255");
  return Value;
}

} // namespace

Allocators::Allocators() {
  for (const auto &[Name, Row] : byName(KnownAllocators))
    BuiltIn[Name] = Row->Does;
}

Error Allocators::addLine(StringRef Line) {
  SmallVector<StringRef, 8> Words;
  SplitString(Line.split('#').first, Words, " \t\r");
  if (Words.empty())
    return Error::success();

  // A function may itself be called `free` or `realloc`; then a position follows, not a name.
  const bool Directive =
      Words.size() > 1 && (Words[0] == "free" || Words[0] == "realloc") && !isPosition(Words[1]);
  Allocator A;
  SmallVector<Field, 3> Fields;
  if (!Directive) {
    Fields = {{"count", &Allocator::Count}, {"size", &Allocator::Size}, {"base", &Allocator::Base}};
  } else if (Words[0] == "free") {
    A.Does = Act::Free;
    Fields = {{"base", &Allocator::Base}};
  } else {
    A.Does = Act::Resize;
    Fields = {{"old base", &Allocator::Base}, {"size", &Allocator::Size}};
  }

  const ArrayRef<StringRef> NameAndPositions = ArrayRef<StringRef>(Words).drop_front(Directive ? 1 : 0);
  const StringRef Name = NameAndPositions[0];
  if (NameAndPositions.size() - 1 != Fields.size()) {
    std::string Needed;
    for (const Field &F : Fields)
      Needed += (Needed.empty() ? "" : ", ") + F.What.str();
    return lineError("'" + Name + "' needs " + Twine(Fields.size()) + " positions (" + Needed + "); found " +
                     Twine(NameAndPositions.size() - 1));
  }
  for (size_t I = 0; I < Fields.size(); ++I) {
    Expected<int> Position = position(NameAndPositions[I + 1], Fields[I].What, /*MayBeAbsent=*/!Directive);
    if (!Position)
      return Position.takeError();
    A.*Fields[I].Where = *Position;
  }
  if (A.Does != Act::Free && A.Size == NoArgument)
    return lineError("'" + Name + "' has no size; expected the position of the argument that holds it");
  FromFile[Name] = A;
  return Error::success();
}

Error Allocators::addFile(StringRef Name) {
  Path = Name.str();
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/true);
  if (!Buffer)
    return createStringError(Buffer.getError(),
                             "cannot read the allocator file '" + Path +
                                 "' that MEMLODE_ALLOCATORS names: " + Buffer.getError().message());
  for (line_iterator Line(**Buffer, /*SkipBlanks=*/true); !Line.is_at_eof(); ++Line)
    if (Error E = addLine(*Line))
      return lineError(Path + ":" + Twine(Line.line_number()) + ": " + toString(std::move(E)));
  return Error::success();
}

const Allocator *Allocators::find(const CallBase &Call, bool &Mismatch) const {
  Mismatch = false;
  if (const Attribute Resource = Call.getFnAttr(ResourceCall); Resource.isValid()) {
    const auto Marked = BuiltIn.find(Resource.getValueAsString());
    return Marked != BuiltIn.end() && fits(Call, Marked->second) ? &Marked->second : nullptr;
  }
  const auto *Callee = dyn_cast<GlobalValue>(Call.getCalledOperand()->stripPointerCasts());
  if (!Callee)
    return nullptr;
  StringRef Name = GlobalValue::dropLLVMManglingEscape(Callee->getName());
  auto Found = FromFile.find(Name);
  if (Found != FromFile.end())
    Called.insert(Name);
  if (Found == FromFile.end()) {
    // A file-local function of the same name is another function.
    if (Callee->hasLocalLinkage())
      return nullptr;
    Found = BuiltIn.find(plainRustName(Name));
    if (Found == BuiltIn.end() || (Found->second.Text && !Callee->isDeclaration()))
      return nullptr;
  }
  Mismatch = !fits(Call, Found->second);
  return Mismatch ? nullptr : &Found->second;
}

SmallVector<StringRef, 8> Allocators::fromFile() const {
  SmallVector<StringRef, 8> Names(FromFile.keys());
  sort(Names);
  return Names;
}

void Allocators::tell(Table &Into) const {
  for (StringRef Name : fromFile())
    Into.asked((Path + ": " + Name).str(), Called.contains(Name));
}

} // namespace memlode
