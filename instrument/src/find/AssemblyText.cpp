//===- AssemblyText.cpp ---------------------------------------------------===//

#include "find/AssemblyText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace memlode {

namespace {

/// Characters for an operand, and for text that differs each time it is written out (`%=`).
constexpr char Operand = '\1';
constexpr char Unique = '\2';

/// Instructions of x86 that touch memory without an operand for it, and those that leave the text.
bool touchesByNature(StringRef Name) {
  static const StringSet<> Names = {
      "movsb",   "movsw",    "movsl", "movsq",  "movsd",    "stosb",      "stosw",       "stosl",    "stosq",
      "stosd",   "lodsb",    "lodsw", "lodsl",  "lodsq",    "lodsd",      "scasb",       "scasw",    "scasl",
      "scasq",   "scasd",    "cmpsb", "cmpsw",  "cmpsl",    "cmpsq",      "cmpsd",       "insb",     "insw",
      "insl",    "insd",     "outsb", "outsw",  "outsl",    "outsd",      "movs",        "stos",     "lods",
      "scas",    "cmps",     "ins",   "outs",   "push",     "pushq",      "pushw",       "pushf",    "pushfq",
      "pop",     "popq",     "popw",  "popf",   "popfq",    "call",       "callq",       "ret",      "retq",
      "lret",    "lretq",    "iret",  "iretq",  "enter",    "leave",      "leaveq",      "xlat",     "xlatb",
      "syscall", "sysenter", "int",   "clzero", "maskmovq", "maskmovdqu", "vmaskmovdqu", "movdir64b"};
  return Names.contains(Name);
}

/// Returns whether such an instruction is arithmetic on vectors if it has operands.
bool isAlsoArithmetic(StringRef Name) { return Name == "movsd" || Name == "cmpsd"; }

bool isPrefix(StringRef Name) {
  static const StringSet<> Names = {"lock",    "rep",      "repe",     "repz",   "repne",
                                    "repnz",   "bnd",      "rex64",    "data16", "addr32",
                                    "notrack", "xacquire", "xrelease", "{vex}",  "{evex}"};
  return Names.contains(Name);
}

/// Directives whose effect is the same for any number of repetitions.
bool mayStandTwice(StringRef Name) {
  static const StringSet<> Names = {
      ".align",  ".balign", ".p2align",       ".nop",        ".nops",  ".skip",   ".loc",    ".file",
      ".globl",  ".global", ".local",         ".hidden",     ".weak",  ".extern", ".code64", ".intel_syntax",
      ".arch",   ".cpu",    ".byte",          ".2byte",      ".4byte", ".8byte",  ".word",   ".short",
      ".hword",  ".value",  ".long",          ".int",        ".quad",  ".xword",  ".ascii",  ".asciz",
      ".string", ".inst",   ".insn",          ".att_syntax", ".float", ".double", ".octa",   ".ds",
      ".zero",   ".space",  ".arch_extension"};
  return Names.contains(Name) || Name.starts_with(".cfi_");
}

/// Directives that may spell instructions.
bool spells(StringRef Name) {
  static const StringSet<> Names = {".byte",  ".2byte", ".4byte", ".8byte", ".word",  ".short", ".hword",
                                    ".value", ".long",  ".int",   ".quad",  ".xword", ".inst",  ".insn"};
  return Names.contains(Name);
}

bool isNamed(char C) { return isAlnum(C) || C == '_' || C == '.' || C == '$' || C == Operand || C == Unique; }

/// Reads one statement after the other.
class Reader {
public:
  Reader(bool IsArm, bool IsIntel) : IsArm(IsArm), IsIntel(IsIntel) {}

  AssemblyText Found;

  void text(StringRef Text) {
    while (!Text.empty()) {
      const size_t End = Text.find_first_of("\n;");
      statement(Text.substr(0, End));
      Text = End == StringRef::npos ? StringRef() : Text.substr(End + 1);
    }
    Found.OnlyHints = Hints != 0 && Others == 0;
  }

private:
  void statement(StringRef Line) {
    const StringRef Comment = IsArm ? "//" : "#";
    if (const size_t At = Line.find(Comment); At != StringRef::npos)
      Line = Line.take_front(At);
    Line = Line.trim();
    while (label(Line))
      ;
    StringRef Name = word(Line);
    while (isPrefix(Name.lower())) {
      Found.IsAtomic |= Name.equals_insensitive("lock");
      Name = word(Line);
    }
    if (Name.empty())
      return;
    if (Line.starts_with("=") && !Line.starts_with("=="))
      Found.Defines = true;
    else if (Name.starts_with("."))
      directive(Name.lower());
    else
      instruction(Name.lower(), Line);
  }

  /// Takes a label from the front of \p Line. A number may be defined any number of times.
  bool label(StringRef &Line) {
    size_t Length = 0;
    if (Line.starts_with("\""))
      Length = std::min(Line.find('"', 1), Line.size() - 1) + 1;
    else
      while (Length < Line.size() && isNamed(Line[Length]))
        ++Length;
    if (Length == 0 || !Line.substr(Length).ltrim().starts_with(":"))
      return false;
    const StringRef Name = Line.take_front(Length);
    Found.Defines |= !all_of(Name, isDigit) && !Name.contains(Unique);
    Line = Line.substr(Length).ltrim().drop_front().ltrim();
    return true;
  }

  static StringRef word(StringRef &Line) {
    const size_t End = Line.find_first_of(" \t=");
    const StringRef Found = Line.substr(0, End);
    Line = End == StringRef::npos ? StringRef() : Line.substr(End).ltrim(" \t");
    return Found;
  }

  void directive(StringRef Name) {
    Found.Defines |= !mayStandTwice(Name);
    Found.MayTouch |= spells(Name);
    Others += spells(Name);
  }

  void instruction(StringRef Name, StringRef Operands) {
    const bool IsHint = Name.starts_with("prefetch") || Name == "prfm" || Name == "lea" || Name == "leaq" ||
                        Name == "leal" || Name == "leaw" || Name.starts_with("nop") ||
                        Name.starts_with("clflush") || Name == "clwb" || Name == "cldemote";
    // A jump names code; what it reads stands in brackets.
    const bool IsJump = IsArm
                            ? Name.starts_with("b") || Name.starts_with("cb") || Name.starts_with("tb")
                            : Name.starts_with("j") || Name.starts_with("loop") || Name.starts_with("xbegin");
    if (IsHint) {
      Hints += !Name.starts_with("nop");
      return;
    }
    ++Others;
    Found.MayTouch |= Name.contains(Operand);
    Found.IsAtomic |= any_of(ArrayRef<StringRef>{"xchg", "stxr", "stlxr", "cas", "ldadd", "swp"},
                             [&](StringRef Word) { return Name.contains(Word); });
    if (IsArm)
      Found.MayTouch |= Operands.contains('[') || Name == "svc" || Name == "hvc" || Name == "smc" ||
                        Name == "bl" || Name == "blr" || Name == "ret" ||
                        (Name == "dc" && Operands.contains("zva"));
    else
      Found.MayTouch |= (touchesByNature(Name) && !(isAlsoArithmetic(Name) && Operands.contains(','))) ||
                        namesMemory(Operands, IsJump);
  }

  /// Returns whether an operand is memory that the text names: an address in brackets, or a symbol.
  bool namesMemory(StringRef Operands, bool IsJump) const {
    if (IsIntel)
      return Operands.contains('[') || Operands.contains_insensitive(" ptr ");
    for (size_t At = Operands.find('('); At != StringRef::npos; At = Operands.find('(', At + 1))
      if (!Operands.take_front(At).rtrim().ends_with("%st"))
        return true;
    if (IsJump)
      return false;
    SmallVector<StringRef, 4> Each;
    Operands.split(Each, ',');
    return any_of(Each, [](StringRef One) {
      One = One.trim();
      const size_t Segment = One.find(':');
      return !One.empty() && (isAlnum(One.front()) || One.front() == '_' || One.front() == '.' ||
                              (One.front() == '%' && Segment != StringRef::npos));
    });
  }

  const bool IsArm, IsIntel;
  unsigned Hints = 0, Others = 0;
};

/// Returns the text in the form that the assembler gets: without escapes, of alternatives the one that is
/// chosen, and something that no text has in place of operands.
std::string plainText(StringRef Text, bool IsIntel) {
  std::string Plain;
  unsigned Alternative = 0;
  bool Choosing = false;
  for (size_t At = 0; At < Text.size(); ++At) {
    char C = Text[At];
    if (Text.substr(At).starts_with("/*")) {
      At = std::min(Text.find("*/", At), Text.size() - 2) + 1;
      continue;
    }
    if (C == '$' && At + 1 < Text.size()) {
      const char Next = Text[++At];
      if (Next == '(' || Next == '|' || Next == ')') {
        Choosing = Next != ')';
        Alternative = Next == '|' ? Alternative + 1 : 0;
        continue;
      }
      if (Next == '$') {
        C = '$';
      } else if (Next == '{') {
        const size_t End = std::min(Text.find('}', At), Text.size() - 1);
        const StringRef Inner = Text.substr(At + 1, End - At - 1);
        At = End;
        C = Inner == ":uid" ? Unique : Inner == ":comment" ? '#' : Inner == ":private" ? '.' : Operand;
      } else {
        while (At + 1 < Text.size() && isDigit(Text[At + 1]))
          ++At;
        C = Operand;
      }
    }
    if (!Choosing || Alternative == unsigned(IsIntel))
      Plain.push_back(C);
  }
  return Plain;
}

} // namespace

AssemblyText readAssembly(const InlineAsm &Asm, const Triple &Target) {
  const bool IsIntel = Asm.getDialect() == InlineAsm::AD_Intel;
  Reader Read(Target.isAArch64(), IsIntel);
  Read.text(plainText(Asm.getAsmString(), IsIntel));
  return Read.Found;
}

} // namespace memlode
