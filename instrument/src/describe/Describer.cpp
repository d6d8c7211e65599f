//===- Describer.cpp ------------------------------------------------------===//

#include "describe/Describer.h"

#include "describe/AddressDependence.h"
#include "describe/MovedValues.h"
#include "memlode_format.h"

#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace memlode {

Describer::Describer(NameBook &Names, Table &Sites, Filter &Wanted, Function &F)
    : Names(Names), Sites(Sites), Wanted(Wanted), F(F), Instructions(F.getInstructionCount()) {}

/// Stands for the number of an access where a call makes an object.
static constexpr unsigned TheObject = 1U << 31;

static FilterEvent::Kind kindOf(const Access &A) {
  if (A.Transfer)
    return FilterEvent::Range;
  if (A.Flags & MEMLODE_FLAG_ATOMIC)
    return FilterEvent::Atomic;
  return A.Kind == MEMLODE_KIND_LOAD ? FilterEvent::Load : FilterEvent::Store;
}

void Describer::learn(const Finder &Accesses, const Allocators &Functions, const LibcBlocks &Blocks) {
  Dependence Addresses(F);
  Parameters = Accesses.parameters(F);
  for (const Access &A : Parameters) {
    Learnt New{Names.nameOf(F.getEntryBlock().front(), A.Pointer, A.direction(), A.Bytes)};
    if (DISubprogram *Source = F.getSubprogram()) {
      New.Named.Location = DILocation::get(F.getContext(), Source->getScopeLine(), 0, Source);
      New.Named.Approximate = false;
    }
    Known.try_emplace({A.I, A.Number}, New);
  }
  for (Instruction &I : instructions(F)) {
    for (const Access &A : Accesses.find(I).Accesses) {
      const Learnt New{Names.nameOf(I, A.Pointer, A.direction(), A.Bytes), Addresses.flagsOf(A.Pointer)};
      const auto Of = Known.try_emplace({&I, A.Number}, New).first;
      Values |= takesValue(A, Of->second.Named);
    }
    bool Mismatch;
    auto *Call = dyn_cast<CallBase>(&I);
    if (Call && Functions.find(*Call, Mismatch))
      Known.try_emplace({&I, TheObject}, Learnt{Names.nameOfAllocation(*Call)});
    if (const BlockReport *Told = Call ? Blocks.find(*Call) : nullptr; Told && Told->makes())
      for (unsigned Number = 0; Number < Told->Anchors; ++Number)
        Known.try_emplace({&I, TheObject + Number}, Learnt{nameOf(*Call, *Told, Number != 0)});
  }
}

Name Describer::nameOf(CallBase &Call, const BlockReport &Told, bool IsInner) {
  if (Told.Place)
    return Names.nameOfBlock(Call, *Told.Place, IsInner);
  Name N = Names.nameOfAllocation(*Told.Of);
  if (IsInner) {
    N.Type.clear();
    N.Variable += N.Variable.empty() ? "" : "[]";
  }
  return N;
}

Verdict Describer::access(const Access &A) {
  const auto &[N, Flags] = Known.at({A.I, A.Number});
  SiteEntry Entry;
  Entry.Kind = A.Kind;
  Entry.Flags = A.Flags | Flags;
  Entry.Bytes = A.Is == Access::Shape::Range || A.Is == Access::Shape::Compressed ? 0 : A.Bytes;
  const bool Value = takesValue(A, N);
  if (Value && movedType(A, F.getParent()->getDataLayout())->isFPOrFPVectorTy())
    Entry.Flags |= MEMLODE_FLAG_FLOAT;
  Verdict V = site(kindOf(A), N, Entry);
  V.Value = Value && V;
  return V;
}

bool Describer::takesValue(const Access &A, const Name &N) {
  return Wanted.mayTakeValues() && movedType(A, F.getParent()->getDataLayout()) &&
         Wanted.takesValue({FilterEvent::Values, &F, Instructions, sourceOf(N), N.Type});
}

Verdict Describer::allocation(CallBase &Call) {
  SiteEntry Entry;
  Entry.Kind = MEMLODE_KIND_ALLOC;
  return site(FilterEvent::Alloc, Known.at({&Call, TheObject}).Named, Entry);
}

Verdict Describer::block(CallBase &Call, unsigned Number) {
  SiteEntry Entry;
  Entry.Kind = MEMLODE_KIND_ALLOC;
  return site(FilterEvent::Alloc, Known.at({&Call, TheObject + Number}).Named, Entry);
}

Verdict Describer::release(CallBase &Call) {
  SiteEntry Entry;
  Entry.Kind = MEMLODE_KIND_FREE;
  Name N;
  N.Location = Call.getDebugLoc().get();
  return site(FilterEvent::Alloc, N, Entry);
}

Verdict Describer::frames() { return {0, leftOutBy(FilterEvent::Frames, F.getSubprogram(), {}), false}; }

std::string Describer::rule(const Verdict &V) const {
  return (Wanted.path() + ":" + Twine(V.LeftOutBy)).str();
}

unsigned Describer::leftOutBy(FilterEvent::Kind Kind, const DISubprogram *Source, StringRef Type) {
  if (Wanted.empty())
    return 0;
  const unsigned Line = Wanted.leavesOut({Kind, &F, Instructions, Source, Type});
  if (Line != 0)
    Sites.mark(MEMLODE_TABLE_FLAG_FILTERED);
  return Line;
}

const DISubprogram *Describer::sourceOf(const Name &N) const {
  return N.Location ? N.Location->getScope()->getSubprogram() : F.getSubprogram();
}

Verdict Describer::site(FilterEvent::Kind Kind, const Name &N, SiteEntry Entry) {
  if (const unsigned Line = leftOutBy(Kind, sourceOf(N), N.Type))
    return {0, Line, false};
  Entry.Evidence = N.Evidence;
  if (N.Approximate)
    Entry.Flags |= MEMLODE_FLAG_APPROXIMATE;
  if (N.Location)
    Entry.Location = Sites.location(*N.Location) + 1;
  if (!N.Variable.empty())
    Entry.Variable = Sites.string(N.Variable) + 1;
  if (!N.Type.empty())
    Entry.Type = Sites.type(N.Type, N.TypeBytes) + 1;
  if (!N.Member.empty())
    Entry.Member = Sites.string(N.Member) + 1;
  return {Sites.site(Entry), 0, false};
}

} // namespace memlode
