//===- Describer.cpp ------------------------------------------------------===//

#include "Describer.h"

#include "memlode_format.h"

using namespace llvm;

namespace memlode {

uint32_t Describer::access(const Access &A) {
  SiteEntry Entry;
  Entry.Kind = A.Kind;
  Entry.Flags = A.Flags;
  Entry.Bytes = A.Is == Access::Shape::Range || A.Is == Access::Shape::Compressed ? 0 : A.Bytes;
  return site(Names.nameOf(*A.I, A.Pointer, A.direction(), A.Bytes), Entry);
}

uint32_t Describer::allocation(CallBase &Call) {
  SiteEntry Entry;
  Entry.Kind = MEMLODE_KIND_ALLOC;
  return site(Names.nameOfAllocation(Call), Entry);
}

uint32_t Describer::release(CallBase &Call) {
  SiteEntry Entry;
  Entry.Kind = MEMLODE_KIND_FREE;
  Name N;
  N.Location = Call.getDebugLoc().get();
  return site(N, Entry);
}

uint32_t Describer::site(const Name &N, SiteEntry Entry) {
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
  return Sites.site(Entry);
}

} // namespace memlode
