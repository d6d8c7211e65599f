//===- Options.h - what the user asked of the pass ------------------------===//
//
// A pass plug-in has no command line of its own under clang, so options are
// environment variables, all read here. README.md lists them.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_OPTIONS_H
#define MEMLODE_INSTRUMENT_OPTIONS_H

#include "llvm/Support/Error.h"

#include <string>

namespace memlode {

struct Options {
  /// The way in which an access reaches the recorder.
  enum class Mode {
    Stream, ///< segments stored inline: what everything downstream reads
    Words,  ///< the words of segments, all to one place that nobody reads: what storing them costs at least
    Call,   ///< one call an access: a yardstick for benchmarks
    Both    ///< the two at once: what the stream says can be compared with what was called
  };
  Mode How = Mode::Stream;

  /// Which accesses a program has.
  enum class Fidelity {
    Optimised, ///< those of the code that will run
    Source     ///< those that the source names, before the optimiser merges, moves or drops them
  };
  Fidelity To = Fidelity::Optimised;

  /// Store one address for accesses a constant distance apart. Off only to check that it loses nothing.
  bool Derive = true;

  /// Each function twice, so that it costs little while recording is off.
  bool Versions = true;

  /// Store the time where the program synchronises.
  bool Stamps = true;

  /// Record the values that accesses load and store, unless a rule of the filter says otherwise.
  bool Values = false;

  /// File that names further allocation functions; empty when there is none.
  std::string AllocatorFile;

  /// File with the rules for events that are not recorded; empty if there is none.
  std::string FilterFile;

  static llvm::Expected<Options> fromEnvironment();
};

} // namespace memlode
#endif
