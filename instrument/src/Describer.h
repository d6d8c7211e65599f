//===- Describer.h - what the site table says of an access ----------------===//
//
// The second step: joins an access with its name and files both as a site.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_DESCRIBER_H
#define MEMLODE_INSTRUMENT_DESCRIBER_H

#include "Finder.h"
#include "Names.h"
#include "Table.h"

namespace memlode {

class Describer {
public:
  Describer(NameBook &Names, Table &Sites) : Names(Names), Sites(Sites) {}

  /// The site of \p A.
  uint32_t access(const Access &A);
  /// The site of a call that makes an object.
  uint32_t allocation(llvm::CallBase &Call);
  /// The site of a call that ends one.
  uint32_t release(llvm::CallBase &Call);

private:
  uint32_t site(const Name &N, SiteEntry Entry);

  NameBook &Names;
  Table &Sites;
};

} // namespace memlode
#endif
