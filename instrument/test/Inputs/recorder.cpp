// A recorder for tests: keeps a program's streams in memory and, when it ends, decodes them by the tables
// that are in the image itself. What the decoder needs to know is what format/SPEC.md says, no more.
//
// By default it compares: a program built with MEMLODE_MODE=both also calls for every access, and the two
// must agree. With MEMLODE_TEST_PRINT set, it prints every op of the stream instead, one a line (`a`: with
// addresses, `o`: with what it promises to other threads, `w`: with instructions, and the lines of the loads
// that address and data are made of); with MEMLODE_TEST_QUIET, it says only that they do not agree.
//
// memlode_test_record(0) switches recording off, memlode_test_record(1) on. What is written on the way to a
// function's dormant side is kept, too: the two still must agree. With MEMLODE_TEST_TOGGLE set, a thread
// switches all the time.

#include "tables.h"

#include <cstring>
#include <cwchar>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

constexpr size_t ReservedBytes = size_t(1) << 36;

/// The extent is a length or a mask of lanes, as far as the op has one.
struct Called {
  uint64_t Anchor, Address, Extent;
};

struct Thread {
  char *Memory;
  std::vector<const uint64_t *> *Pieces; ///< where its words are, in order
  std::vector<Called> *Calls;
  Thread *Next;
};

const char *nameOf(uint8_t Code) {
  switch (Code) {
  case MEMLODE_OP_ENTER:
    return "enter";
  case MEMLODE_OP_EXIT:
    return "exit";
  case MEMLODE_OP_RESUME:
    return "resume";
  case MEMLODE_OP_ALLOC:
    return "alloc";
  case MEMLODE_OP_ALLOC_ARRAY:
    return "alloc_array";
  case MEMLODE_OP_REALLOC:
    return "realloc";
  case MEMLODE_OP_FREE:
    return "free";
  case MEMLODE_OP_UNMAP:
    return "unmap";
  }
  return "?";
}

/// Walks one thread's stream.
bool Switched; ///< recording was off at times

class Decoder {
public:
  Decoder(const Thread &T, bool Print) : T(T), Print(Print) {}

  uint64_t run() {
    for (const uint64_t *Piece : *T.Pieces)
      for (At = Piece; *At != 0;)
        segment();
    if (!Print && T.Calls && Compared != T.Calls->size())
      fail("%zu calls, %zu of them decoded", T.Calls->size(), Compared);
    return Accesses;
  }

private:
  void segment() {
    const auto *A = reinterpret_cast<const memlode_anchor *>(*At++);
    const TableInfo &Table = tableOf(A);
    const auto &S = Table.Segments.at(A->segment);
    Words[A] = At;
    if (!S.Ops.empty() && S.Ops[0].Code == MEMLODE_OP_REPEAT)
      return repeat(Table, S);
    std::vector<uint64_t> Addresses(S.Ops.size()), Lengths(S.Ops.size());
    for (size_t I = 0; I < S.Ops.size(); ++I) {
      const OpInfo &O = S.Ops[I];
      Accesses += O.Code < MEMLODE_OP_ENTER;
      if (O.AddressFrom > I || O.LengthFrom > I)
        fail("an op refers to one outside its segment");
      const auto address = [&] {
        Addresses[I] = O.AddressFrom ? Addresses[I - O.AddressFrom] + uint64_t(O.Delta) : *At++;
      };
      switch (O.Code) {
      case MEMLODE_OP_ACCESS:
        address();
        access(Table, O, Addresses[I], Table.Sites.at(O.Site).Bytes, ~0ULL, 0);
        break;
      case MEMLODE_OP_DERIVED: {
        auto Source = Words.find(A - O.FromSegment);
        if (Source == Words.end())
          fail("an address is derived from a segment that was not executed");
        const uint64_t Address = Source->second[O.FromWord] + uint64_t(O.Delta);
        access(Table, O, Address, Table.Sites.at(O.Site).Bytes, ~0ULL, 0);
        break;
      }
      case MEMLODE_OP_RANGE:
        address();
        Lengths[I] = O.LengthFrom ? Lengths[I - O.LengthFrom] : *At++;
        access(Table, O, Addresses[I], Lengths[I], ~0ULL, Lengths[I]);
        break;
      case MEMLODE_OP_MASKED:
        address();
        access(Table, O, Addresses[I], Table.Sites.at(O.Site).Bytes, *At, *At);
        ++At;
        break;
      case MEMLODE_OP_GATHER: {
        const uint64_t *Lanes = At;
        At += O.Lanes;
        uint64_t Mask = *At++;
        for (unsigned L = 0; L < O.Lanes; ++L) {
          const bool Touched = Mask >> L & 1;
          if (!Print)
            compare(Table, O, Touched ? &Lanes[L] : nullptr, Mask);
          else if (Touched)
            line(Table, O, Lanes[L], Table.Sites.at(O.Site).Bytes, ~0ULL);
        }
        break;
      }
      case MEMLODE_OP_EXIT:
        frame(Table, S, O, 0);
        break;
      case MEMLODE_OP_ENTER:
      case MEMLODE_OP_RESUME:
        frame(Table, S, O, *At++);
        break;
      case MEMLODE_OP_VALUE:
        if (I == 0)
          fail("a value of nothing");
        value(Table, S.Ops[I - 1]);
        break;
      case MEMLODE_OP_SYNC:
        address();
        sync(O.Sync, *At++);
        break;
      case MEMLODE_OP_STAMP:
        stamp(*At++);
        break;
      case MEMLODE_OP_FREE:
        object(Table, O, 1);
        break;
      case MEMLODE_OP_ALLOC:
      case MEMLODE_OP_UNMAP:
        object(Table, O, 2);
        break;
      default:
        object(Table, O, 3);
      }
    }
  }

  void repeat(const TableInfo &Table, const TableInfo::SegmentInfo &S) {
    const uint64_t Iterations = *At++;
    std::vector<uint64_t> Addresses(S.Ops.size());
    for (size_t I = 1; I < S.Ops.size(); ++I)
      Addresses[I] =
          S.Ops[I].AddressFrom ? Addresses[I - S.Ops[I].AddressFrom] + uint64_t(S.Ops[I].Delta) : *At++;
    for (uint64_t Iteration = 0; Iteration < Iterations; ++Iteration)
      for (size_t I = 1; I < S.Ops.size(); ++I) {
        const OpInfo &O = S.Ops[I];
        if (O.Code != MEMLODE_OP_STRIDE)
          fail("something other than a stride is repeated");
        ++Accesses;
        access(Table, O, Addresses[I] + Iteration * uint64_t(O.Step), Table.Sites.at(O.Site).Bytes, ~0ULL, 0);
      }
  }

  void access(const TableInfo &Table, const OpInfo &O, uint64_t Address, uint64_t Length, uint64_t Mask,
              uint64_t Extent) {
    if (Print)
      line(Table, O, Address, Length, Mask);
    else
      compare(Table, O, &Address, Extent);
  }

  /// The address of a lane that is masked out is of no concern.
  void compare(const TableInfo &Table, const OpInfo &O, const uint64_t *Address, uint64_t Extent) {
    if (Compared == T.Calls->size())
      fail("the stream has more accesses than were called");
    const Called &C = (*T.Calls)[Compared];
    const auto *A = reinterpret_cast<const memlode_anchor *>(C.Anchor);
    const OpInfo &Expected = tableOf(A).Segments.at(A->segment).Ops.at(0);
    if (&tableOf(A) != &Table || Expected.Site != O.Site || (Address && C.Address != *Address) ||
        C.Extent != Extent)
      fail("access %zu: called at site %llu with %llx and %llx, decoded site %llu with %llx and %llx",
           Compared, (unsigned long long)Expected.Site, (unsigned long long)C.Address,
           (unsigned long long)C.Extent, (unsigned long long)O.Site,
           (unsigned long long)(Address ? *Address : 0), (unsigned long long)Extent);
    ++Compared;
  }

  void place(const TableInfo &Table, const SiteInfo &S) {
    if (S.Location) {
      const auto &L = Table.Locations.at(S.Location - 1);
      printf(" %s:%llu", Table.Strings.at(Table.Functions.at(L.Function).Name).c_str(),
             (unsigned long long)L.Line);
    }
  }

  static const char *dependence(const SiteInfo &S) {
    if (S.Flags & MEMLODE_FLAG_CHASED)
      return S.Flags & MEMLODE_FLAG_LOADED_ADDRESS ? " chased" : " chased from nowhere";
    if (S.Flags & MEMLODE_FLAG_LOADED_ADDRESS)
      return S.Flags & MEMLODE_FLAG_COMPUTED_ADDRESS ? " loaded and not" : " loaded";
    return S.Flags & MEMLODE_FLAG_COMPUTED_ADDRESS ? " computed" : "";
  }

  void line(const TableInfo &Table, const OpInfo &O, uint64_t Address, uint64_t Length, uint64_t Mask) {
    static const char *const Kinds[] = {"load", "store", "update", "alloc", "free"};
    const SiteInfo &S = Table.Sites.at(O.Site);
    printf("%s %llu", Kinds[S.Kind], (unsigned long long)Length);
    if (O.Code == MEMLODE_OP_MASKED)
      printf(" mask %llx of %llu", (unsigned long long)Mask, (unsigned long long)O.Lanes);
    place(Table, S);
    if (Print && getenv("MEMLODE_TEST_PRINT")[0] == 'a')
      printf(" @%llx", (unsigned long long)Address);
    printf("%s", dependence(S));
    if (Print && getenv("MEMLODE_TEST_PRINT")[0] == 'o') {
      printf(S.Flags & MEMLODE_FLAG_ATOMIC ? ", atomic" : ", plain");
      printf("%s%s%s", S.Flags & MEMLODE_FLAG_VOLATILE ? " volatile" : "",
             S.Flags & MEMLODE_FLAG_NON_TEMPORAL ? " non-temporal" : "",
             S.Flags & MEMLODE_FLAG_PREFETCH ? " prefetch" : "");
      printf("%s%s%s%s%s", S.Flags & MEMLODE_FLAG_ACQUIRE ? " acquire" : "",
             S.Flags & MEMLODE_FLAG_RELEASE ? " release" : "",
             S.Flags & MEMLODE_FLAG_SEQUENTIAL ? " sequential" : "",
             S.Flags & MEMLODE_FLAG_FENCED ? " fenced" : "", S.Flags & MEMLODE_FLAG_ADDS ? " adds" : "");
    }
    if (Print && getenv("MEMLODE_TEST_PRINT")[0] == 'w')
      printf(" after %llu, from%s, of%s", (unsigned long long)O.Instructions, O.AddressFeeds.c_str(),
             O.DataFeeds.c_str());
    if (Print && getenv("MEMLODE_TEST_PRINT")[0] == 'b')
      printf(" then%s", O.BranchFeeds.c_str());
    printf("\n");
  }

  void frame(const TableInfo &Table, const TableInfo::SegmentInfo &S, const OpInfo &O, uint64_t Frame) {
    const char *Name = Table.Strings.at(Table.Functions.at(S.Function).Name).c_str();
    if (O.Code == MEMLODE_OP_ENTER) {
      while (!Stack.empty() && Stack.back() <= Frame)
        Stack.pop_back();
      Stack.push_back(Frame);
    } else if (O.Code == MEMLODE_OP_RESUME) {
      while (!Stack.empty() && Stack.back() < Frame)
        Stack.pop_back();
    }
    if (Print)
      printf("%s %s depth %zu\n", nameOf(O.Code), Name, Stack.size());
    if (O.Code == MEMLODE_OP_EXIT) {
      // What was entered while recording was off is on no stack.
      if (Stack.empty() && !Switched)
        fail("%s exits an empty stack", Name);
      if (!Stack.empty())
        Stack.pop_back();
    }
  }

  void object(const TableInfo &Table, const OpInfo &O, unsigned Words) {
    if (Print) {
      printf("%s %s", nameOf(O.Code), At[0] ? "some" : "null");
      for (unsigned I = 1; I < Words; ++I)
        if (O.Code == MEMLODE_OP_REALLOC && I == 2)
          printf(" %s", At[I] ? "some" : "null");
        else
          printf(" %llu", (unsigned long long)At[I]);
      place(Table, Table.Sites.at(O.Site));
      if (getenv("MEMLODE_TEST_PRINT")[0] == 'a')
        printf(" @%llx @%llx", (unsigned long long)At[0],
               (unsigned long long)(O.Code == MEMLODE_OP_REALLOC ? At[2] : 0));
      printf("\n");
    }
    At += Words;
  }

  /// Words as they come, the first the lowest.
  void value(const TableInfo &Table, const OpInfo &Of) {
    const SiteInfo &S = Table.Sites.at(Of.Site);
    const size_t Words =
        (S.Bytes * (Of.Lanes ? Of.Lanes : 1) + 7) / 8 * (S.Kind == MEMLODE_KIND_UPDATE ? 2 : 1);
    if (Print)
      printf("value%s", S.Flags & MEMLODE_FLAG_FLOAT ? " float" : "");
    for (size_t I = 0; I < Words; ++I, ++At)
      if (Print)
        printf(" %llx", (unsigned long long)*At);
    if (Print)
      printf("\n");
  }

  /// The value 1 means that no other thread records, whatever was read before.
  void grows(uint64_t Now) {
    if (Now != 1 && Now < Latest)
      fail("a stamp is smaller than the one before");
    Latest = std::max(Latest, Now);
  }

  void sync(uint8_t Kind, uint64_t Now) {
    grows(Now);
    if (Print)
      printf("sync %u\n", Kind);
  }

  void stamp(uint64_t Now) {
    grows(Now);
    if (Print)
      printf("stamp\n");
  }

  const Thread &T;
  bool Print;
  uint64_t Latest = 0;
  std::map<const memlode_anchor *, const uint64_t *> Words; ///< of each segment's last execution
  const uint64_t *At = nullptr;
  /// Calls that agree; and the ops they were made for, of which a gather makes several.
  size_t Compared = 0, Accesses = 0;
  std::vector<uint64_t> Stack;
};

Thread *Threads;
std::mutex Lock;
thread_local Thread Mine;
bool Loaded;

/// After the other destructors of the image, which are recorded as well. A child or a thread still running at
/// exit is no concern of the tests.
__attribute__((destructor(101))) void atEnd() {
  if (!Loaded)
    return;
  fflush(stdout);
  const bool Print = getenv("MEMLODE_TEST_PRINT");
  uint64_t Total = 0;
  for (Thread *T = Threads; T; T = T->Next)
    Total += Decoder(*T, Print).run();
  if (!Print && !getenv("MEMLODE_TEST_QUIET"))
    fprintf(stderr, "recorder: %llu accesses agree\n", (unsigned long long)Total);
}

} // namespace

extern "C" {

extern const char __memlode_abi_2_link_with_memlode_cc;
const char __memlode_abi_2_link_with_memlode_cc = 3;
__attribute__((tls_model("initial-exec"))) thread_local uint64_t *__memlode_cursor;
uint32_t __memlode_others = 1;

/// Nothing but zeros: recording is on.
alignas(4096) char __memlode_control[4096];

static volatile uint64_t &dormant() {
  return reinterpret_cast<memlode_process_header *>(__memlode_control)->dormant;
}

/// Takes effect for the calling thread at once, for others when they run out of room.
void memlode_test_record(int On) {
  dormant() = On ? 0 : MEMLODE_OFF_USER;
  Switched = true;
  __memlode_cursor = nullptr;
}

static Thread *newThread() {
  void *Memory = mmap(nullptr, ReservedBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (Memory == MAP_FAILED)
    fail("no memory");
  auto *T = new Thread;
  const uintptr_t Step = 2 * MEMLODE_RING_CHUNK_BYTES;
  T->Memory = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(Memory) + Step - 1) / Step * Step);
  T->Pieces = new std::vector<const uint64_t *>;
  if (!Mine.Calls)
    Mine.Calls = new std::vector<Called>;
  T->Calls = Mine.Calls;
  std::lock_guard<std::mutex> Guard(Lock);
  T->Next = Threads;
  Threads = T;
  return T;
}

/// A fresh chunk, or, without room, the slack of one.
static uint64_t *newPiece(bool Room) {
  static thread_local Thread *Own;
  if (!Own)
    Own = newThread();
  const size_t Index = 2 * Own->Pieces->size() + (Room ? 1 : 2);
  auto *Start = reinterpret_cast<uint64_t *>(Own->Memory + Index * MEMLODE_RING_CHUNK_BYTES);
  Own->Pieces->push_back(Start);
  return Start;
}

/// The compiler saves all that the convention promises.
__attribute__((preserve_all)) uint64_t *__memlode_refill(uint64_t *Cursor) {
  if (reinterpret_cast<uintptr_t>(Cursor) & MEMLODE_RING_ROOM_BIT)
    fail("refilled with room left");
  return __memlode_cursor = newPiece(true);
}

__attribute__((preserve_all)) uint64_t *__memlode_more(uint64_t *Cursor) { return __memlode_refill(Cursor); }

__attribute__((preserve_all)) uint64_t *__memlode_switch(uint64_t *Cursor) {
  if (!dormant())
    return __memlode_refill(Cursor);
  __memlode_cursor = nullptr;
  return newPiece(false);
}

/// A segment of an object that comes or goes: into the chunk that the thread is recording to, or one of its
/// own.
static void putDormant(std::initializer_list<uint64_t> Words, uint64_t Anchor) {
  uint64_t *At = __memlode_cursor;
  if (reinterpret_cast<uintptr_t>(At) & MEMLODE_RING_ROOM_BIT)
    __memlode_cursor += 2 + Words.size();
  else
    At = newPiece(true);
  *At++ = Anchor;
  *At++ = __builtin_readcyclecounter();
  std::copy(Words.begin(), Words.end(), At);
}

void __memlode_dormant_1(uint64_t Anchor, uint64_t A) { putDormant({A}, Anchor); }
void __memlode_dormant_2(uint64_t Anchor, uint64_t A, uint64_t B) { putDormant({A, B}, Anchor); }
void __memlode_dormant_3(uint64_t Anchor, uint64_t A, uint64_t B, uint64_t C) {
  putDormant({A, B, C}, Anchor);
}

/// The extent by its definition, byte by byte.
uint64_t __memlode_extent_string(const void *Own, const char *S, uint64_t Most) {
  return Own || !S ? 0 : std::min<uint64_t>(strnlen(S, Most) + 1, Most);
}

uint64_t __memlode_extent_append(const void *Own, const char *S, uint64_t Most) {
  return Own ? 0 : strnlen(S, Most) + 1;
}

uint64_t __memlode_extent_compare(const void *Own, const char *A, const char *B, uint64_t Most,
                                  uint32_t Fold) {
  uint64_t I = 0;
  while (!Own && I < Most && (Fold ? tolower(A[I]) == tolower(B[I]) : A[I] == B[I]) && A[I])
    ++I;
  return Own || I == Most ? (Own ? 0 : Most) : I + 1;
}

uint64_t __memlode_extent_string_wide(const void *Own, const wchar_t *S, uint64_t Most) {
  return Own || !S ? 0 : std::min<uint64_t>(wcsnlen(S, Most) + 1, Most) * sizeof *S;
}

uint64_t __memlode_extent_append_wide(const void *Own, const wchar_t *S, uint64_t Most) {
  return Own ? 0 : (wcsnlen(S, Most) + 1) * sizeof *S;
}

uint64_t __memlode_extent_compare_wide(const void *Own, const wchar_t *A, const wchar_t *B, uint64_t Most) {
  uint64_t I = 0;
  while (!Own && I < Most && A[I] == B[I] && A[I])
    ++I;
  return Own ? 0 : std::min(I + 1, Most) * sizeof *A;
}

void __memlode_call_access(uint64_t Anchor, uint64_t Address, uint64_t Extent) {
  if (!Mine.Calls)
    Mine.Calls = new std::vector<Called>;
  Mine.Calls->push_back({Anchor, Address, Extent});
}

void __memlode_module_load(const void *) {
  if (!Loaded && getenv("MEMLODE_TEST_TOGGLE"))
    std::thread([] {
      for (uint64_t Random = 1;; Random = Random * 6364136223846793005ULL + 1) {
        std::this_thread::sleep_for(std::chrono::microseconds(Random >> 58));
        memlode_test_record(Random >> 40 & 1);
      }
    }).detach();
  Loaded = true;
}

void __memlode_module_unload(const void *) {}
}
