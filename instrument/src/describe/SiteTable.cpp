//===- SiteTable.cpp ------------------------------------------------------===//

#include "describe/SiteTable.h"
#include "LlvmCompat.h"
#include "names/TypeNames.h"

#include "memlode_format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Function.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace memlode {

void putVarint(SmallVectorImpl<char> &Out, uint64_t Value) {
  raw_svector_ostream OS(Out);
  encodeULEB128(Value, OS);
}

void putSigned(SmallVectorImpl<char> &Out, int64_t Value) {
  putVarint(Out, (static_cast<uint64_t>(Value) << 1) ^ static_cast<uint64_t>(Value >> 63));
}

uint32_t TableList::append(StringRef Encoded) {
  Entries.append(Encoded.begin(), Encoded.end());
  return Count++;
}

uint32_t TableList::add(StringRef Encoded) {
  auto [Found, New] = Index.try_emplace(Encoded, Count);
  return New ? append(Encoded) : Found->second;
}

void TableList::write(std::string &Out) const {
  raw_string_ostream OS(Out);
  encodeULEB128(Count, OS);
  OS << Entries;
}

uint32_t Table::string(StringRef Text) {
  TableList::Bytes Entry;
  putVarint(Entry, Text.size());
  Entry += Text;
  return Strings.add(Entry);
}

uint32_t Table::file(const DIFile &File) {
  TableList::Bytes Entry;
  putVarint(Entry, string(File.getDirectory()));
  putVarint(Entry, string(File.getFilename()));
  const uint32_t Index = Files.add(Entry);
  const auto Sum = File.getChecksum();
  std::string Bytes;
  if (Sum && Sum->Kind == DIFile::CSK_MD5 && tryGetFromHex(Sum->Value, Bytes) && Bytes.size() == 16) {
    TableList::Bytes Checksum;
    putVarint(Checksum, Index);
    Checksum += Bytes;
    Checksums.add(Checksum);
  }
  return Index;
}

std::string qualifiedName(const DISubprogram &Subprogram) {
  std::string Name = Subprogram.getName().str();
  for (const DIScope *Scope = Subprogram.getScope();
       Scope && !isa<DIFile, DICompileUnit, DISubprogram>(Scope); Scope = Scope->getScope()) {
    StringRef Outer = Scope->getName();
    if (!Outer.empty())
      Name = (Outer + "::" + Name).str();
    else if (isa<DINamespace>(Scope))
      Name.insert(0, "(anonymous namespace)::");
  }
  return Name;
}

static StringRef linkedAs(const DISubprogram &Subprogram) {
  const StringRef Linkage = Subprogram.getLinkageName();
  return Linkage.empty() ? Subprogram.getName() : Linkage;
}

uint32_t Table::linkageName(const Function &F) {
  const DISubprogram *Subprogram = F.getSubprogram();
  return string(Subprogram ? linkedAs(*Subprogram) : F.getName());
}

/// Returns whether a function returns `void *`, or `*mut u8` in Rust (SPEC.md §2.9).
static bool returnsUntyped(const DISubprogram &Subprogram) {
  const DISubroutineType *Type = Subprogram.getType();
  const std::optional<const DIType *> Pointee =
      Type && Type->getTypeArray().size() > 0 ? TypeNames::pointee(Type->getTypeArray()[0]) : std::nullopt;
  if (!Pointee)
    return false;
  const DIType *Returned = TypeNames::strip(*Pointee);
  const DICompileUnit *Unit = Subprogram.getUnit();
  return !Returned || (isa<DIBasicType>(Returned) && Returned->getName() == "u8" && Unit &&
                       languageOf(*Unit) == dwarf::DW_LANG_Rust);
}

uint32_t Table::function(const DISubprogram &Subprogram, const DIFile *File) {
  auto Found = FunctionOf.find({&Subprogram, File});
  if (Found != FunctionOf.end())
    return Found->second;
  TableList::Bytes Entry;
  putVarint(Entry, string(qualifiedName(Subprogram)));
  putVarint(Entry, string(linkedAs(Subprogram)));
  putVarint(Entry, File ? file(*File) + 1 : 0);
  putVarint(Entry, Subprogram.getLine());
  const uint32_t Index = Functions.add(Entry);
  if (returnsUntyped(Subprogram)) {
    TableList::Bytes Number;
    putVarint(Number, Index);
    Untyped.add(Number);
  }
  return FunctionOf[{&Subprogram, File}] = Index;
}

uint32_t Table::function(const Function &F) {
  if (const DISubprogram *Subprogram = F.getSubprogram())
    return function(*Subprogram, Subprogram->getFile());
  TableList::Bytes Entry;
  putVarint(Entry, string(demangle(F.getName())));
  putVarint(Entry, string(F.getName()));
  putVarint(Entry, 0); // no file
  putVarint(Entry, 0); // no line
  return Functions.add(Entry);
}

uint32_t Table::location(const DILocation &Location) {
  auto Found = LocationOf.find(&Location);
  if (Found != LocationOf.end())
    return Found->second;
  TableList::Bytes Entry;
  // The caller's location first: its index must be the smaller one.
  const uint32_t InlinedAt = Location.getInlinedAt() ? location(*Location.getInlinedAt()) + 1 : 0;
  // A macro of another crate and a file that is included in a body have a file of their own.
  putVarint(Entry, function(*Location.getScope()->getSubprogram(), Location.getScope()->getFile()));
  putVarint(Entry, Location.getLine());
  putVarint(Entry, Location.getColumn());
  putVarint(Entry, InlinedAt);
  return LocationOf[&Location] = Locations.add(Entry);
}

uint32_t Table::type(StringRef Name, uint64_t Bytes) {
  TableList::Bytes Entry;
  putVarint(Entry, string(Name));
  putVarint(Entry, Bytes);
  const uint32_t Index = Types.add(Entry);
  if (Index == TypesTold.size())
    TypesTold.emplace_back(Name.str(), Bytes);
  return Index;
}

uint32_t Table::site(const SiteEntry &Site) {
  TableList::Bytes Entry;
  Entry.push_back(static_cast<char>(Site.Kind));
  Entry.push_back(static_cast<char>(Site.Evidence));
  for (uint64_t Field : {uint64_t(Site.Flags), Site.Bytes, uint64_t(Site.Location), uint64_t(Site.Variable),
                         uint64_t(Site.Type), uint64_t(Site.Member)})
    putVarint(Entry, Field);
  return Sites.add(Entry);
}

uint32_t Table::segment(uint32_t Function, uint32_t OpCount, StringRef Ops) {
  TableList::Bytes Entry;
  putVarint(Entry, Function);
  putVarint(Entry, OpCount);
  Entry += Ops;
  return Segments.append(Entry);
}

void Table::asked(StringRef Text, bool Found) {
  TableList::Bytes Entry;
  putVarint(Entry, string(Text));
  Entry.push_back(Found);
  Asked.append(Entry);
}

void Table::section(uint32_t What, StringRef Contents) {
  putVarint(Sections, What);
  putVarint(Sections, Contents.size());
  Sections += Contents;
}

std::string Table::write() {
  if (leavesOut()) {
    SmallString<16> Reasons;
    putVarint(Reasons, LeftOut.size());
    for (auto [Reason, Count] : LeftOut) {
      Reasons.push_back(static_cast<char>(Reason));
      putVarint(Reasons, Count);
    }
    section(MEMLODE_TABLE_SECTION_LEFT_OUT, Reasons);
  }
  if (Asked.size() > 0) {
    std::string Entries;
    Asked.write(Entries);
    section(MEMLODE_TABLE_SECTION_ASKED, Entries);
  }
  if (CompiledIn || Checksums.size() > 0) {
    SmallString<16> Directory;
    putVarint(Directory, CompiledIn);
    std::string Sums;
    Checksums.write(Sums);
    section(MEMLODE_TABLE_SECTION_SOURCES, Directory.str().str() + Sums);
  }
  if (Untyped.size() > 0) {
    std::string Entries;
    Untyped.write(Entries);
    section(MEMLODE_TABLE_SECTION_UNTYPED, Entries);
  }
  std::string Payload;
  for (const TableList *List : {&Strings, &Files, &Functions, &Locations, &Types, &Sites, &Segments})
    List->write(Payload);
  raw_string_ostream Rest(Payload);
  encodeULEB128(Sections.size(), Rest);
  Rest << Sections;

  std::string Out;
  raw_string_ostream OS(Out);
  support::endian::Writer W(OS, endianness::little);
  W.write<uint32_t>(MEMLODE_MAGIC_TABLE);
  W.write<uint16_t>(MEMLODE_VERSION_TABLE);
  W.write<uint16_t>(Marks);
  W.write<uint32_t>(Payload.size());
  W.write<uint32_t>(crc32(arrayRefFromStringRef(Payload)));
  OS << Payload;
  return Out;
}

} // namespace memlode
