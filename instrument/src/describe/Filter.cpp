//===- Filter.cpp ---------------------------------------------------------===//

#include "describe/Filter.h"

#include "describe/SiteTable.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace memlode {

static Error mistake(const Twine &What) { return createStringError(inconvertibleErrorCode(), What); }

/// Splits \p Line at white space that is not in quotes, which are dropped, and ends at a word that begins
/// with #.
static Error split(StringRef Line, SmallVectorImpl<std::string> &Words) {
  bool Quoted = false, Inside = false;
  for (char C : Line) {
    if (!Quoted && isSpace(C)) {
      Inside = false;
      continue;
    }
    if (!Inside && C == '#')
      return Error::success();
    if (!Inside)
      Words.emplace_back();
    Inside = true;
    if (C == '"')
      Quoted = !Quoted;
    else
      Words.back() += C;
  }
  return Quoted ? mistake("a quotation mark is not closed") : Error::success();
}

static Expected<unsigned> kinds(StringRef Names) {
  SmallVector<StringRef, 4> List;
  Names.split(List, ',');
  unsigned Kinds = 0;
  for (StringRef Name : List) {
    const unsigned Kind = StringSwitch<unsigned>(Name)
                              .Case("load", FilterEvent::Load)
                              .Case("store", FilterEvent::Store)
                              .Case("atomic", FilterEvent::Atomic)
                              .Case("range", FilterEvent::Range)
                              .Case("access", FilterEvent::Accesses)
                              .Case("alloc", FilterEvent::Alloc)
                              .Case("frames", FilterEvent::Frames)
                              .Case("values", FilterEvent::Values)
                              .Case("all", FilterEvent::All)
                              .Default(0);
    if (Kind == 0)
      return mistake("there is no kind '" + Name +
                     "'; expected load, store, atomic, range, access (these four), alloc, frames, "
                     "all (these) or values");
    Kinds |= Kind;
  }
  return Kinds;
}

Error Filter::glob(std::optional<GlobPattern> &Into, StringRef Key, StringRef Pattern) {
  Expected<GlobPattern> Made = GlobPattern::create(Texts.save(Pattern));
  if (!Made)
    return mistake("the " + Key + " '" + Pattern + "' is no pattern: " + toString(Made.takeError()));
  Into = std::move(*Made);
  return Error::success();
}

Error Filter::addCondition(Rule &R, StringRef Word) {
  const size_t At = Word.find_first_of("=<");
  const StringRef Key = Word.substr(0, At);
  if (At == StringRef::npos || At + 1 == Word.size())
    return mistake(
        "'" + Word +
        "' is no condition; expected function=, file=, type= or kind= and a value, or instructions< "
        "and a number");
  const StringRef Value = Word.substr(At + 1);
  const bool Equals = Word[At] == '=';
  if (Key == "instructions" && !Equals) {
    unsigned Below;
    if (Value.getAsInteger(10, Below))
      return mistake("'" + Word + "' compares with '" + Value + "'; expected a number");
    R.InstructionsBelow = Below;
    return Error::success();
  }
  if (Key == "function" && Equals)
    return glob(R.Function, Key, Value);
  if (Key == "type" && Equals)
    return glob(R.Type, Key, Value);
  if (Key == "file" && Equals)
    // Of a relative path any number of leading directories may be missing.
    return glob(R.File, Key, Value.starts_with("/") ? Value.str() : ("*/" + Value).str());
  if (Key == "kind" && Equals) {
    Expected<unsigned> Kinds = kinds(Value);
    if (!Kinds)
      return Kinds.takeError();
    R.Kinds = *Kinds;
    return Error::success();
  }
  return mistake("'" + Key + Word.substr(At, 1) +
                 "' is no condition; expected function=, file=, type=, kind= or instructions<");
}

Error Filter::addLine(StringRef Text, unsigned Line) {
  SmallVector<std::string, 4> Words;
  if (Error E = split(Text, Words))
    return E;
  if (Words.empty())
    return Error::success();
  Rule R;
  R.Line = Line;
  R.Text = join(Words, " ");
  R.Records = Words[0] == "include";
  if (!R.Records && Words[0] != "exclude")
    return mistake("a rule begins with '" + Twine(Words[0]) + "'; expected 'include' or 'exclude'");
  SmallVector<StringRef, 4> Keys;
  for (StringRef Word : ArrayRef<std::string>(Words).drop_front()) {
    const StringRef Key = Word.substr(0, Word.find_first_of("=<"));
    if (is_contained(Keys, Key))
      return mistake("the condition '" + Key + "' is given twice; write two rules");
    Keys.push_back(Key);
    if (Error E = addCondition(R, Word))
      return E;
  }
  Rules.push_back(std::move(R));
  return Error::success();
}

Error Filter::addFile(StringRef Name) {
  auto Buffer = MemoryBuffer::getFile(Name, /*IsText=*/true);
  if (!Buffer)
    return createStringError(Buffer.getError(),
                             "cannot read the filter file '" + Name +
                                 "' that MEMLODE_FILTER names: " + Buffer.getError().message());
  Path = Name.str();
  for (line_iterator Line(**Buffer, /*SkipBlanks=*/true); !Line.is_at_eof(); ++Line)
    if (Error E = addLine(*Line, Line.line_number()))
      return mistake(Name + ":" + Twine(Line.line_number()) + ": " + toString(std::move(E)));
  return Error::success();
}

/// The absolute path of \p File, as far as the debug info has it; always with a slash in front.
static std::string absolute(const DIFile &File) {
  SmallString<128> Path;
  if (!sys::path::is_absolute(File.getFilename()))
    Path = File.getDirectory();
  sys::path::append(Path, File.getFilename());
  sys::path::remove_dots(Path, /*remove_dot_dot=*/true);
  return (Path.starts_with("/") ? "" : "/") + std::string(Path);
}

const BitVector &Filter::placesOf(const FilterEvent &E) {
  const void *Key = E.Source ? static_cast<const void *>(E.Source) : E.Holder;
  auto [Found, New] = Places.try_emplace(Key);
  if (!New)
    return Found->second;

  const StringRef Linkage = E.Source ? E.Source->getLinkageName() : E.Holder->getName();
  const std::string Names[] = {E.Source ? qualifiedName(*E.Source) : Linkage.str(), Linkage.str(),
                               demangle(Linkage)};
  const std::string File = E.Source && E.Source->getFile() ? absolute(*E.Source->getFile()) : "";
  Found->second.resize(Rules.size());
  for (size_t I = 0; I < Rules.size(); ++I) {
    const Rule &R = Rules[I];
    const auto Named = [&](const std::string &Name) { return !Name.empty() && R.Function->match(Name); };
    if ((!R.Function || any_of(Names, Named)) && (!R.File || R.File->match(File)))
      Found->second.set(I);
  }
  return Found->second;
}

bool Filter::matches(const Rule &R, const FilterEvent &E) {
  return (R.Kinds & E.Is) && (!R.InstructionsBelow || E.Instructions < *R.InstructionsBelow) &&
         (!R.Type || (!E.Type.empty() && R.Type->match(E.Type)));
}

const Filter::Rule *Filter::decides(const FilterEvent &E) {
  if (Rules.empty())
    return nullptr;
  const BitVector &Places = placesOf(E);
  const Rule *Last = nullptr;
  for (size_t I = Rules.size(); I-- > 0;) {
    if ((Last && Matched.test(I)) || !Places.test(I) || !matches(Rules[I], E))
      continue;
    Matched.set(I);
    if (!Last)
      Last = &Rules[I];
  }
  return Last;
}

void Filter::tell(Table &Into) const {
  for (size_t I = 0; I < Rules.size(); ++I)
    Into.asked((Path + ":" + Twine(Rules[I].Line) + ": " + Rules[I].Text).str(), Matched.test(I));
}

unsigned Filter::leavesOut(const FilterEvent &E) {
  const Rule *R = decides(E);
  return R && !R->Records ? R->Line : 0;
}

bool Filter::mayTakeValues() const {
  return AllValues ||
         any_of(Rules, [](const Rule &R) { return R.Records && (R.Kinds & FilterEvent::Values); });
}

bool Filter::takesValue(const FilterEvent &E) {
  if (!mayTakeValues())
    return false;
  const Rule *R = decides(E);
  return R ? R->Records : AllValues;
}

} // namespace memlode
