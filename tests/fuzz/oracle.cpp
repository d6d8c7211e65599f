// What a program built with MEMLODE_MODE=both says of itself, call by call, beside what is recorded of it:
// each thread's accesses go to a file of their own in the directory $MEMLODE_FUZZ_ORACLE, written through
// shared memory, so that whatever ends the program leaves it whole. An entry is an access as a reader of the
// trace sees it.

#include "tables.h"

#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// The most entries that are kept; the count goes on.
constexpr size_t MostEntries = 1 << 22;

struct Entry {
  uint64_t Address;
  uint32_t Bytes;
  uint32_t Site; ///< its kind in the lowest two bits, its line in the others
};

struct File {
  uint64_t Count;
  uint64_t Reserved;
  Entry Entries[MostEntries];
};

struct Site {
  uint8_t Op;
  uint32_t KindAndLine;
  uint64_t Bytes, Lanes;
  bool InHandler;
};

std::mutex Lock;
__thread File *Files[2];
__thread uint64_t Lane;

/// Returns the folder of the files. libc does not know its environment yet when functions of .preinit_array
/// run.
const char *directory() {
  static char Environment[1 << 16];
  const char Name[] = "MEMLODE_FUZZ_ORACLE=";
  const int Descriptor = ::open("/proc/self/environ", O_RDONLY);
  const ssize_t Length = read(Descriptor, Environment, sizeof Environment - 1);
  close(Descriptor);
  for (ssize_t At = 0; At < Length; At += strlen(Environment + At) + 1)
    if (strncmp(Environment + At, Name, sizeof Name - 1) == 0)
      return Environment + At + sizeof Name - 1;
  fail("MEMLODE_FUZZ_ORACLE names no directory");
}

File *open(bool InHandler) {
  static const char *Directory = directory();
  char Path[4096];
  snprintf(Path, sizeof Path, "%s/%ld%s", Directory, syscall(SYS_gettid), InHandler ? "s" : "");
  const int Descriptor = ::open(Path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (Descriptor < 0 || ftruncate(Descriptor, sizeof(File)) != 0)
    fail("cannot make %s", Path);
  void *Memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, Descriptor, 0);
  if (Memory == MAP_FAILED)
    fail("no memory for %s", Path);
  close(Descriptor);
  return static_cast<File *>(Memory);
}

Site siteOf(uint64_t Anchor) {
  // Never destroyed: destructors of the program may still access memory.
  static auto &Known = *new std::map<uint64_t, Site>;
  std::lock_guard<std::mutex> Guard(Lock);
  auto Found = Known.find(Anchor);
  if (Found != Known.end())
    return Found->second;
  const auto *A = reinterpret_cast<const memlode_anchor *>(Anchor);
  const TableInfo &Table = tableOf(A);
  const OpInfo &O = Table.Segments.at(A->segment).Ops.at(0);
  const SiteInfo &S = Table.Sites.at(O.Site);
  const auto &Function = Table.Functions.at(Table.Segments.at(A->segment).Function);
  const uint64_t Line = S.Location ? Table.Locations.at(S.Location - 1).Line : 0;
  const uint32_t KindAndLine = uint32_t(Line << 2 | S.Kind);
  return Known[Anchor] = {O.Code, KindAndLine, S.Bytes, O.Lanes,
                          Table.Strings.at(Function.Name) == "on_signal"};
}

void add(uint64_t Address, uint64_t Bytes, const Site &S) {
  File *&Mine = Files[S.InHandler];
  if (!Mine)
    Mine = open(S.InHandler);
  if (Mine->Count < MostEntries)
    Mine->Entries[Mine->Count] = {Address, static_cast<uint32_t>(Bytes), S.KindAndLine};
  ++Mine->Count;
}

} // namespace

extern "C" void __memlode_call_access(uint64_t Anchor, uint64_t Address, uint64_t Extent) {
  const Site S = siteOf(Anchor);
  switch (S.Op) {
  case MEMLODE_OP_RANGE:
    if (Extent)
      add(Address, Extent, S);
    return;
  case MEMLODE_OP_MASKED:
    for (uint64_t I = 0; I < S.Lanes; ++I)
      if (Extent >> I & 1)
        add(Address + I * S.Bytes, S.Bytes, S);
    return;
  case MEMLODE_OP_GATHER: // one call a lane
    if (Extent >> Lane & 1)
      add(Address, S.Bytes, S);
    Lane = (Lane + 1) % S.Lanes;
    return;
  default:
    add(Address, S.Bytes, S);
  }
}
