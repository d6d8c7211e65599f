//===- Options.cpp --------------------------------------------------------===//

#include "Options.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace memlode {

static Error badChoice(StringRef Variable, StringRef Found, StringRef Choices) {
  return createStringError(inconvertibleErrorCode(),
                           Variable + " is '" + Found + "'; expected " + Choices + ", or unset");
}

Expected<Options> Options::fromEnvironment() {
  Options O;
  if (auto Asked = sys::Process::GetEnv("MEMLODE_MODE")) {
    if (*Asked == "words")
      O.How = Mode::Words;
    else if (*Asked == "call")
      O.How = Mode::Call;
    else if (*Asked == "both")
      O.How = Mode::Both;
    else if (*Asked != "stream")
      return badChoice("MEMLODE_MODE", *Asked, "'stream', 'words', 'call' or 'both'");
  }
  if (auto Asked = sys::Process::GetEnv("MEMLODE_FIDELITY")) {
    if (*Asked == "source")
      O.To = Fidelity::Source;
    else if (*Asked != "optimised")
      return badChoice("MEMLODE_FIDELITY", *Asked, "'optimised' or 'source'");
  }
  for (auto [Variable, Choice] :
       {std::pair("MEMLODE_DERIVE", &O.Derive), std::pair("MEMLODE_VERSIONS", &O.Versions),
        std::pair("MEMLODE_STAMPS", &O.Stamps), std::pair("MEMLODE_VALUES", &O.Values)}) {
    const auto Asked = sys::Process::GetEnv(Variable);
    if (Asked && *Asked != "0" && *Asked != "1")
      return badChoice(Variable, *Asked, "'0' or '1'");
    if (Asked)
      *Choice = *Asked == "1";
  }
  if (auto File = sys::Process::GetEnv("MEMLODE_ALLOCATORS"))
    O.AllocatorFile = *File;
  if (auto File = sys::Process::GetEnv("MEMLODE_FILTER"))
    O.FilterFile = *File;
  return O;
}

} // namespace memlode
