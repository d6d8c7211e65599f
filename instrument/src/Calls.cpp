//===- Calls.cpp ----------------------------------------------------------===//

#include "Calls.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace memlode {

static Transfer transferNamed(StringRef Name) {
  return StringSwitch<Transfer>(Name)
      .Case("memcpy", Transfer::Copy)
      .Case("memmove", Transfer::Copy)
      .Case("mempcpy", Transfer::Copy)
      .Case("__memcpy_chk", Transfer::Copy)
      .Case("__memmove_chk", Transfer::Copy)
      .Case("__mempcpy_chk", Transfer::Copy)
      .Case("bcopy", Transfer::CopyFrom)
      .Case("memset", Transfer::Fill)
      .Case("__memset_chk", Transfer::Fill)
      .Case("bzero", Transfer::Clear)
      .Default(Transfer::None);
}

/// Functions of libc and libm that call nothing of the program's. Those of libm are listed for double only.
static bool isSilentName(StringRef Name) {
  static const StringSet<> Exact = {"strlen", "strnlen", "strcmp",  "strncmp",    "strchr",     "strrchr",
                                    "strstr", "strspn",  "strcspn", "strpbrk",    "strcpy",     "strncpy",
                                    "stpcpy", "strcat",  "strncat", "memcmp",     "memchr",     "memrchr",
                                    "bcmp",   "abs",     "labs",    "llabs",      "ffs",        "ffsl",
                                    "ffsll",  "isdigit", "isascii", "toascii",    "atoi",       "atol",
                                    "atoll",  "strtol",  "strtoll", "strtoul",    "strtoull",   "atof",
                                    "strtod", "wcslen",  "memccpy", "strcasecmp", "strncasecmp"};
  static const StringSet<> Math = {"sin",   "cos",   "tan",       "asin",      "acos",     "atan",  "atan2",
                                   "sinh",  "cosh",  "tanh",      "asinh",     "acosh",    "atanh", "exp",
                                   "exp2",  "exp10", "expm1",     "log",       "log2",     "log10", "log1p",
                                   "logb",  "pow",   "sqrt",      "cbrt",      "floor",    "ceil",  "round",
                                   "trunc", "rint",  "nearbyint", "roundeven", "fabs",     "fmod",  "fmin",
                                   "fmax",  "ldexp", "frexp",     "modf",      "copysign", "sincos"};
  if (Exact.contains(Name) || Math.contains(Name))
    return true;
  return (Name.ends_with("f") || Name.ends_with("l")) && Math.contains(Name.drop_back());
}

/// The name by which \p F is known to the library, or nothing when it is the program's own.
static StringRef libraryName(const Function &F, const TargetLibraryInfo &TLI) {
  LibFunc Known;
  if (F.hasLocalLinkage() || F.isIntrinsic() || !TLI.getLibFunc(F, Known))
    return {};
  return F.getName();
}

Transfer libraryTransfer(const CallBase &Call, const TargetLibraryInfo &TLI) {
  const Function *Callee = Call.getCalledFunction();
  return Callee ? transferNamed(libraryName(*Callee, TLI)) : Transfer::None;
}

bool callersAssumeSilence(const Function &F, const TargetLibraryInfo &TLI) {
  StringRef Name = libraryName(F, TLI);
  return transferNamed(Name) != Transfer::None || isSilentName(Name);
}

bool mayRecord(const CallBase &Call, const TargetLibraryInfo &TLI) {
  if (const auto *Asm = dyn_cast<InlineAsm>(Call.getCalledOperand()))
    // Assembly may switch stacks or call; an empty one is only a barrier for the compiler.
    return !Asm->getAsmString().empty() && (Asm->hasSideEffects() || !Call.doesNotAccessMemory());
  if (isa<IntrinsicInst>(Call))
    return !Call.hasFnAttr(Attribute::NoCallback);
  const Function *Callee = Call.getCalledFunction();
  return !Callee || !callersAssumeSilence(*Callee, TLI);
}

} // namespace memlode
