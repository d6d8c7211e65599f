//===- QuietCalls.cpp -----------------------------------------------------===//

#include "find/QuietCalls.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace llvm;

namespace memlode {

namespace {

/// Names, and beginnings of names, and whether functions with them are quiet.
class Classes {
public:
  Classes() {
#define QUIET(Reason, Names) add(Names, true);
#define TOLD(Reason, Names) add(Names, false);
#define MATH(Names) addMath(Names);
#include "find/Libc.def"
    add(Runtimes, true);
  }

  bool isQuiet(StringRef Name) const {
    if (const auto Found = Exact.find(Name); Found != Exact.end())
      return Found->second;
    for (size_t Length = Name.size(); Length > 0; --Length)
      if (const auto Found = Beginnings.find(Name.take_front(Length)); Found != Beginnings.end())
        return Found->second;
    return isMath(Name);
  }

private:
  /// Functions of C++, of exceptions, of OpenMP and of the compiler's own library, which have objects of
  /// their own.
  static constexpr const char *Runtimes =
      "__cxa_* _Unwind_* __gxx_personality_v0 __clang_call_terminate _ZSt9terminatev _ZSt17__throw_* "
      "_ZSt18__throw_* _ZSt19__throw_* _ZSt20__throw_* _ZSt21__throw_* _ZSt22__throw_* _ZSt24__throw_* "
      "_ZSt25__throw_* _ZSt26__throw_* _ZSt28__throw_* __kmpc_* omp_* GOMP_* __tls_get_addr "
      "_ZNSt6thread* _ZNSt18condition_variable* _ZNSt3__15mutex* _ZNSt3__115recursive_mutex* "
      "_ZNSt3__118condition_variable* _ZNSt3__16thread* __libc_single_threaded _ZSt15get_new_handlerv";

  void add(StringRef Names, bool IsQuiet) {
    SmallVector<StringRef, 64> All;
    Names.split(All, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef Name : All)
      (Name.consume_back("*") ? Beginnings : Exact)[Name] = IsQuiet;
  }

  void addMath(StringRef Names) {
    SmallVector<StringRef, 64> All;
    Names.split(All, ' ', -1, /*KeepEmpty=*/false);
    for (const StringRef Name : All)
      Math[Name] = true;
  }

  /// Returns whether it is a function of libm under one of its names for a type.
  bool isMath(StringRef Name) const {
    Name.consume_front("__");
    Name.consume_back("_finite");
    if (Math.contains(Name))
      return true;
    for (const StringRef Type : {"f128", "f64x", "f32x", "f64", "f32", "f16", "f", "l"})
      if (Name.ends_with(Type) && Math.contains(Name.drop_back(Type.size())))
        return true;
    return false;
  }

  StringMap<bool> Exact, Beginnings, Math;
};

} // namespace

bool isQuiet(StringRef Name) {
  static const Classes Known;
  return Known.isQuiet(Name);
}

} // namespace memlode
