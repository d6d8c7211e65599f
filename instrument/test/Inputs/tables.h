// The site tables in the images of a running program, decoded by what format/SPEC.md says and no more.
#ifndef MEMLODE_TEST_TABLES_H
#define MEMLODE_TEST_TABLES_H

#include "memlode_format.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char *Format, ...) {
  va_list Args;
  va_start(Args, Format);
  fprintf(stderr, "recorder: ");
  vfprintf(stderr, Format, Args);
  fprintf(stderr, "\n");
  _Exit(99);
}

struct OpInfo {
  uint8_t Code, Sync;
  uint64_t Site, Lanes, AddressFrom, LengthFrom, FromSegment, FromWord;
  int64_t Delta;
  int64_t Step;
  uint64_t Instructions;
  /// The lines of the loads: { of one group } { of another }; with a ', those of the iteration before.
  std::string AddressFeeds, DataFeeds;
  std::string BranchFeeds = " nothing"; ///< likewise; empty if something else decides as well
};

struct SiteInfo {
  uint8_t Kind, Evidence;
  uint64_t Flags, Bytes, Location, Variable, Type, Member;
};

class Bytes {
public:
  Bytes(const uint8_t *At, size_t Length) : At(At), End(At + Length) {}
  uint8_t byte() {
    if (At == End)
      fail("table ends early");
    return *At++;
  }
  uint64_t varint() {
    uint64_t Value = 0;
    for (unsigned Shift = 0;; Shift += 7) {
      uint8_t B = byte();
      Value |= uint64_t(B & 127) << Shift;
      if (B < 128)
        return Value;
    }
  }
  int64_t svarint() {
    uint64_t Z = varint();
    return int64_t(Z >> 1) ^ -int64_t(Z & 1);
  }
  std::string text(size_t Length) {
    if (size_t(End - At) < Length)
      fail("string ends early");
    std::string S(reinterpret_cast<const char *>(At), Length);
    At += Length;
    return S;
  }
  Bytes part(size_t Length) {
    if (size_t(End - At) < Length)
      fail("a section ends early");
    At += Length;
    return {At - Length, Length};
  }
  bool done() const { return At == End; }

private:
  const uint8_t *At, *End;
};

struct TableInfo {
  std::vector<std::string> Strings;
  struct FunctionInfo {
    uint64_t Name, Linkage, File, Line;
  };
  struct LocationInfo {
    uint64_t Function, Line, Column, InlinedAt;
  };
  struct TypeInfo {
    uint64_t Name, Size;
  };
  struct SegmentInfo {
    uint64_t Function;
    std::vector<OpInfo> Ops;
  };
  std::vector<FunctionInfo> Functions;
  std::vector<LocationInfo> Locations;
  std::vector<TypeInfo> Types;
  std::vector<SiteInfo> Sites;
  std::vector<SegmentInfo> Segments;
  std::map<uint64_t, Bytes> Sections;
};

uint32_t crcOf(const uint8_t *At, size_t Length) {
  uint32_t Crc = ~0U;
  for (; Length--; ++At) {
    Crc ^= *At;
    for (int I = 0; I < 8; ++I)
      Crc = Crc >> 1 ^ (Crc & 1 ? 0xedb88320U : 0);
  }
  return ~Crc;
}

OpInfo readOp(Bytes &B) {
  OpInfo O{};
  O.Code = B.byte();
  const auto address = [&] {
    O.AddressFrom = B.varint();
    if (O.AddressFrom)
      O.Delta = B.svarint();
  };
  switch (O.Code) {
  case MEMLODE_OP_REPEAT:
  case MEMLODE_OP_ENTER:
  case MEMLODE_OP_EXIT:
  case MEMLODE_OP_RESUME:
  case MEMLODE_OP_VALUE:
  case MEMLODE_OP_STAMP:
    return O;
  case MEMLODE_OP_SYNC:
    O.Sync = B.byte();
    address();
    return O;
  }
  O.Site = B.varint();
  switch (O.Code) {
  case MEMLODE_OP_ACCESS:
    address();
    break;
  case MEMLODE_OP_RANGE:
    address();
    O.LengthFrom = B.varint();
    break;
  case MEMLODE_OP_MASKED:
    O.Lanes = B.varint();
    address();
    break;
  case MEMLODE_OP_GATHER:
    O.Lanes = B.varint();
    break;
  case MEMLODE_OP_STRIDE:
    address();
    O.Step = B.svarint();
    break;
  case MEMLODE_OP_DERIVED:
    O.FromSegment = B.varint();
    O.FromWord = B.varint();
    O.Delta = B.svarint();
    break;
  case MEMLODE_OP_ALLOC:
  case MEMLODE_OP_ALLOC_ARRAY:
  case MEMLODE_OP_REALLOC:
  case MEMLODE_OP_FREE:
  case MEMLODE_OP_UNMAP:
    break;
  default:
    fail("unknown op %d", O.Code);
  }
  return O;
}

/// The loads that the section `earlier` marks: segment, op, and number of the load of that op.
using Marks = std::set<std::tuple<uint64_t, uint64_t, uint64_t>>;

Marks readEarlier(Bytes B) {
  Marks Found;
  for (uint64_t N = B.varint(); N--;) {
    const uint64_t Segment = B.varint(), Op = B.varint();
    for (uint64_t Of = B.varint(); Of--;)
      Found.emplace(Segment, Op, B.varint());
  }
  if (!B.done())
    fail("bytes left over in a section");
  return Found;
}

/// The lines of the loads of each group. The first load has the number \p Number, which moves on to the next.
std::string readFeeds(const TableInfo &T, const Marks &Earlier, uint64_t Segment, uint64_t Op,
                      uint64_t &Number, Bytes &B) {
  std::string Text;
  for (uint64_t Groups = B.varint(); Groups--;) {
    std::set<std::pair<uint64_t, bool>> Lines;
    for (uint64_t N = B.varint(); N--; ++Number) {
      const auto &S = T.Segments.at(Segment - uint64_t(B.svarint()));
      const SiteInfo &Site = T.Sites.at(S.Ops.at(B.varint()).Site);
      Lines.emplace(Site.Location ? T.Locations.at(Site.Location - 1).Line : 0,
                    Earlier.count({Segment, Op, Number}) != 0);
    }
    Text += " {";
    for (auto [Line, IsEarlier] : Lines)
      Text += " " + std::to_string(Line) + (IsEarlier ? "'" : "");
    Text += " }";
  }
  return Text;
}

/// The sections of what lies between accesses, and of what they wait for.
void readWork(TableInfo &T) {
  Bytes Counts = T.Sections.at(MEMLODE_TABLE_SECTION_INSTRUCTIONS);
  if (Counts.varint() != T.Segments.size())
    fail("instructions are not told of each segment");
  for (auto &S : T.Segments) {
    for (OpInfo &O : S.Ops)
      O.Instructions = Counts.varint();
    Counts.varint();
  }
  const Marks Earlier = readEarlier(T.Sections.at(MEMLODE_TABLE_SECTION_EARLIER));
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> Numbers; // of the first load of its branches, by op
  Bytes B = T.Sections.at(MEMLODE_TABLE_SECTION_FEEDS);
  for (uint64_t N = B.varint(); N--;) {
    const uint64_t Segment = B.varint(), Op = B.varint();
    OpInfo &O = T.Segments.at(Segment).Ops.at(Op);
    uint64_t &Number = Numbers[{Segment, Op}];
    O.AddressFeeds = readFeeds(T, Earlier, Segment, Op, Number, B);
    O.DataFeeds = readFeeds(T, Earlier, Segment, Op, Number, B);
  }
  Bytes Branches = T.Sections.at(MEMLODE_TABLE_SECTION_BRANCHES);
  for (uint64_t N = Branches.varint(); N--;) {
    const uint64_t Segment = Branches.varint(), Op = Branches.varint();
    OpInfo &O = T.Segments.at(Segment).Ops.at(Op);
    O.BranchFeeds = readFeeds(T, Earlier, Segment, Op, Numbers[{Segment, Op}], Branches);
  }
  if (!B.done() || !Counts.done() || !Branches.done())
    fail("bytes left over in a section");
}

TableInfo readTable(const memlode_table_header *H) {
  if (H->magic != MEMLODE_MAGIC_TABLE || H->version != MEMLODE_VERSION_TABLE)
    fail("no table where an anchor leads");
  const auto *Payload = reinterpret_cast<const uint8_t *>(H + 1);
  if (crcOf(Payload, H->payload_bytes) != H->crc32)
    fail("the table's checksum is wrong");
  Bytes B(Payload, H->payload_bytes);
  TableInfo T;
  for (uint64_t N = B.varint(); N--;)
    T.Strings.push_back(B.text(B.varint()));
  for (uint64_t N = B.varint(); N--;) // files
    B.varint(), B.varint();
  for (uint64_t N = B.varint(); N--;) {
    uint64_t Name = B.varint(), Linkage = B.varint(), File = B.varint(), Line = B.varint();
    T.Functions.push_back({Name, Linkage, File, Line});
  }
  for (uint64_t N = B.varint(); N--;) {
    uint64_t Function = B.varint(), Line = B.varint(), Column = B.varint(), InlinedAt = B.varint();
    if (InlinedAt > T.Locations.size())
      fail("a location is inlined at a later one");
    T.Locations.push_back({Function, Line, Column, InlinedAt});
  }
  for (uint64_t N = B.varint(); N--;) {
    uint64_t Name = B.varint(), Size = B.varint();
    T.Types.push_back({Name, Size});
  }
  for (uint64_t N = B.varint(); N--;) {
    SiteInfo S;
    S.Kind = B.byte();
    S.Evidence = B.byte();
    S.Flags = B.varint();
    S.Bytes = B.varint();
    S.Location = B.varint();
    S.Variable = B.varint();
    S.Type = B.varint();
    S.Member = B.varint();
    T.Sites.push_back(S);
  }
  for (uint64_t N = B.varint(); N--;) {
    uint64_t Function = B.varint();
    TableInfo::SegmentInfo S{Function, {}};
    for (uint64_t M = B.varint(); M--;)
      S.Ops.push_back(readOp(B));
    T.Segments.push_back(std::move(S));
  }
  Bytes Sections = B.part(B.varint());
  while (!Sections.done()) {
    uint64_t What = Sections.varint();
    if (!T.Sections.emplace(What, Sections.part(Sections.varint())).second)
      fail("a table has two sections of one kind");
  }
  if (!B.done())
    fail("bytes left over in a table");
  readWork(T);
  return T;
}

const TableInfo &tableOf(const memlode_anchor *A) {
  // Never destroyed: destructors of the program may still access memory.
  static auto &Known = *new std::map<const memlode_table_header *, TableInfo>;
  const auto *H =
      reinterpret_cast<const memlode_table_header *>(reinterpret_cast<const char *>(A) + A->table_rel);
  auto Found = Known.find(H);
  return Found != Known.end() ? Found->second : Known.emplace(H, readTable(H)).first->second;
}

} // namespace
#endif
