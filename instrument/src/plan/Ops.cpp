//===- Ops.cpp - segments and their ops as words and in the table ---------===//

#include "plan/Segments.h"

#include "memlode_format.h"

using namespace llvm;

namespace memlode {

unsigned Word::count() const {
  switch (Computed) {
  case How::Lanes:
    return cast<FixedVectorType>(A->getType())->getNumElements();
  case How::Moved:
  case How::Before:
  case How::After:
    return divideCeil(Bytes, sizeof(uint64_t));
  default:
    return 1;
  }
}

unsigned Op::words() const {
  unsigned Count = addressIsWord() + (Length && LengthFrom == 0);
  for (const Word &W : Words)
    Count += W.count();
  return Count;
}

void Op::encode(SmallVectorImpl<char> &Out) const {
  const auto address = [&] {
    putVarint(Out, AddressFrom);
    if (AddressFrom != 0)
      putSigned(Out, AddressDelta);
  };
  if (FromSegment != 0) {
    Out.push_back(static_cast<char>(MEMLODE_OP_DERIVED));
    putVarint(Out, Site);
    putVarint(Out, FromSegment);
    putVarint(Out, FromWord);
    return putSigned(Out, AddressDelta);
  }
  Out.push_back(static_cast<char>(Code));
  switch (Code) {
  case MEMLODE_OP_REPEAT:
  case MEMLODE_OP_ENTER:
  case MEMLODE_OP_EXIT:
  case MEMLODE_OP_RESUME:
  case MEMLODE_OP_VALUE:
  case MEMLODE_OP_STAMP:
    return;
  case MEMLODE_OP_SYNC:
    Out.push_back(static_cast<char>(Sync));
    return address();
  default:
    putVarint(Out, Site);
  }
  switch (Code) {
  case MEMLODE_OP_ACCESS:
    return address();
  case MEMLODE_OP_STRIDE:
    address();
    return putSigned(Out, Step);
  case MEMLODE_OP_RANGE:
    address();
    return putVarint(Out, LengthFrom);
  case MEMLODE_OP_MASKED:
    putVarint(Out, Lanes);
    return address();
  case MEMLODE_OP_GATHER:
    return putVarint(Out, Lanes);
  default:
    return;
  }
}

unsigned Segment::words() const {
  unsigned Count = 1;
  for (const Op &O : Ops)
    Count += O.words();
  return Count;
}

} // namespace memlode
