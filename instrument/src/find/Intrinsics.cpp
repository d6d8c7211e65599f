//===- Intrinsics.cpp -----------------------------------------------------===//

#include "find/Intrinsics.h"

#include "memlode_format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace memlode {

namespace intrinsics {
namespace {

using Form = IntrinsicAccess::Form;
constexpr unsigned Load = MEMLODE_KIND_LOAD;
constexpr unsigned Store = MEMLODE_KIND_STORE;
constexpr unsigned Update = MEMLODE_KIND_UPDATE;
constexpr int Result = IntrinsicAccess::Result;
constexpr int None = IntrinsicAccess::None;
constexpr unsigned Ordered =
    MEMLODE_FLAG_ATOMIC | MEMLODE_FLAG_ACQUIRE | MEMLODE_FLAG_RELEASE | MEMLODE_FLAG_SEQUENTIAL;
constexpr unsigned Past = MEMLODE_FLAG_NON_TEMPORAL;
constexpr unsigned About = MEMLODE_FLAG_APPROXIMATE;
constexpr unsigned Hint = MEMLODE_FLAG_PREFETCH;

/// The most rows of a tile register, and bytes of each (Intel's manual, volume 1, 18.1).
constexpr unsigned TileRows = 16;
constexpr uint64_t TileRowBytes = 64;
/// The area of XSAVE that all processors have: the data of FXSAVE, and the header. The rest depends
/// on the processor and the mask (volume 1, 13.4).
constexpr uint64_t LegacyBytes = 512, StateBytes = 576;
constexpr uint64_t LineBytes = 64;

struct Row {
  const char *Names; ///< without `llvm.`, separated by spaces; `*` stands for anything
  std::vector<IntrinsicAccess> Accesses;
};

/// The first row that fits counts.
const Row Rows[] = {
    // ---- one access, or one of each side ----
    {"x86.sse3.ldu.dq x86.avx.ldu.dq.256 x86.avx10.vmovrs* x86.movrs*", {{Load, Form::Plain, 0}}},
    {"x86.vbcstne*", {{Load, Form::Plain, 0, None, 2}}},
    {"x86.vcvtne*128", {{Load, Form::Plain, 0, None, 16}}},
    {"x86.vcvtne*256", {{Load, Form::Plain, 0, None, 32}}},
    {"x86.sse.ldmxcsr", {{Load, Form::Plain, 0, None, 4}}},
    {"x86.sse.stmxcsr", {{Store, Form::Plain, 0, None, 4}}},
    {"x86.mmx.movnt.dq x86.directstore*", {{Store, Form::Plain, 0, 1, 0, None, None, None, None, Past}}},
    {"x86.movdir64b x86.enqcmd*",
     {{Load, Form::Plain, 1, None, LineBytes},
      {Store, Form::Plain, 0, None, LineBytes, None, None, None, None, Past}}},
    {"x86.clzero", {{Store, Form::Plain, 0, None, LineBytes, None, None, None, None, About}}},
    {"x86.aadd* x86.aand* x86.aor* x86.axor*",
     {{Update, Form::Plain, 0, 1, 0, None, None, None, None, MEMLODE_FLAG_ATOMIC}}},
    {"x86.cmpccxadd* x86.atomic.*.cc x86.atomic.*.rm",
     {{Update, Form::Plain, 0, 1, 0, None, None, None, None, Ordered}}},
    {"x86.atomic.bt*", {{Update, Form::Plain, 0, Result, 0, None, None, None, None, Ordered}}},
    {"x86.aesenc128kl x86.aesdec128kl", {{Load, Form::Plain, 1, None, 48}}},
    {"x86.aesenc256kl x86.aesdec256kl", {{Load, Form::Plain, 1, None, 64}}},
    {"x86.aesencwide128kl x86.aesdecwide128kl", {{Load, Form::Plain, 0, None, 48}}},
    {"x86.aesencwide256kl x86.aesdecwide256kl", {{Load, Form::Plain, 0, None, 64}}},
    {"x86.invpcid", {{Load, Form::Plain, 1, None, 16}}},
    {"x86.ldtilecfg*", {{Load, Form::Plain, 0, None, 64}}},
    {"x86.sttilecfg*", {{Store, Form::Plain, 0, None, 64}}},
    {"x86.fxsave*", {{Store, Form::Plain, 0, None, LegacyBytes, None, None, None, None, About}}},
    {"x86.fxrstor*", {{Load, Form::Plain, 0, None, LegacyBytes, None, None, None, None, About}}},
    {"x86.xsave*", {{Store, Form::Plain, 0, None, StateBytes, None, None, None, None, About}}},
    {"x86.xrstor*", {{Load, Form::Plain, 0, None, StateBytes, None, None, None, None, About}}},
    {"x86.prefetchrs", {{Load, Form::Plain, 0, None, 1, None, None, None, None, Hint}}},
    // What stands in the buffer else is stored by the program.
    {"eh.sjlj.setjmp", {{Store, Form::Plain, 0, None, 8, None, None, None, None, About}}},
    {"eh.sjlj.longjmp", {{Load, Form::Plain, 0, None, 24}}},
    {"init.trampoline", {{Store, Form::Plain, 0, None, 23, None, None, None, None, About}}},
    {"experimental.memset.pattern", {{Store, Form::Pattern, 0, 1, 0, None, None, None, 2}}},

    // ---- lanes one behind the other ----
    {"x86.avx.maskload.* x86.avx2.maskload.*", {{Load, Form::Masked, 0, Result, 0, 1}}},
    {"x86.avx.maskstore.* x86.avx2.maskstore.*", {{Store, Form::Masked, 0, 2, 0, 1}}},
    {"x86.sse2.maskmov.dqu", {{Store, Form::Masked, 2, 0, 1, 1, None, None, None, Past}}},
    {"x86.mmx.maskmovq", {{Store, Form::Masked, 2, 0, 1, 1, None, None, None, Past}}},
    {"x86.avx512.mask.pmov*b.mem.*", {{Store, Form::Masked, 0, 1, 1, 2}}},
    {"x86.avx512.mask.pmov*w.mem.*", {{Store, Form::Masked, 0, 1, 2, 2}}},
    {"x86.avx512.mask.pmov*d.mem.*", {{Store, Form::Masked, 0, 1, 4, 2}}},
    {"vp.load vp.load.ff", {{Load, Form::Masked, 0, Result, 0, 1, None, None, 2}}},
    {"vp.store", {{Store, Form::Masked, 1, 0, 0, 2, None, None, 3}}},

    // ---- each lane at a place of its own ----
    {"x86.avx2.gather.*", {{Load, Form::Gather, 1, Result, 0, 3, 2, 4}}},
    {"x86.avx512.gatherpf.* x86.avx512.scatterpf.*", {{Load, Form::Gather, 2, 1, 1, 0, 1, 3, None, Hint}}},
    {"x86.avx512.gather* x86.avx512.mask.gather*", {{Load, Form::Gather, 1, Result, 0, 3, 2, 4}}},
    {"x86.avx512.scatter* x86.avx512.mask.scatter*", {{Store, Form::Gather, 0, 3, 0, 1, 2, 4}}},
    {"vp.gather", {{Load, Form::Gather, 0, Result, 0, 1, None, None, 2}}},
    {"vp.scatter", {{Store, Form::Gather, 1, 0, 0, 2, None, None, 3}}},
    {"experimental.vector.histogram.*", {{Update, Form::Gather, 0, 1, 0, 2}}},
    {"experimental.vp.strided.load", {{Load, Form::Strided, 0, Result, 0, 2, None, 1, 3}}},
    {"experimental.vp.strided.store", {{Store, Form::Strided, 1, 0, 0, 3, None, 2, 4}}},
    {"matrix.column.major.load", {{Load, Form::Columns, 0, Result, 0, 3, None, 1, 4}}},
    {"matrix.column.major.store", {{Store, Form::Columns, 1, 0, 0, 4, None, 2, 5}}},
    {"x86.tileload*.internal", {{Load, Form::Tile, 2, None, TileRowBytes, 0, None, 3, 1}}},
    {"x86.tilestore*.internal", {{Store, Form::Tile, 2, None, TileRowBytes, 0, None, 3, 1}}},
    {"x86.tileload*", {{Load, Form::Tile, 1, None, TileRowBytes, None, None, 2, None, About}}},
    {"x86.tilestore*", {{Store, Form::Tile, 1, None, TileRowBytes, None, None, 2, None, About}}},

    // ---- nothing ----
    // They empty lines, or move them in the hierarchy: no data that the program sees is read or written.
    {"x86.sse2.clflush x86.clflushopt x86.clwb x86.cldemote clear_cache", {}},
    // They say which line is to be watched.
    {"x86.sse3.monitor x86.monitorx x86.umonitor", {}},
    // The shadow stack and the records of lightweight profiling are the processor's own.
    {"x86.rstorssp x86.clrssbsy x86.wrss* x86.wruss* x86.llwpcb x86.slwpcb", {}},
    // They name memory for the optimiser, debug information or a code generator's tables.
    {"stackrestore invariant.* launder.invariant.group strip.invariant.group adjust.trampoline va_end "
     "localescape var.annotation ptr.annotation annotation codeview.annotation fake.use lifetime.* "
     "experimental.noalias.scope.decl gcroot experimental.stackmap call.preallocated.* icall.branch.funnel "
     "swift.async.context.addr x86.seh.*",
     {}},
    // Slots of the frame that the code generator fills for unwinding and stack protection.
    {"stackprotector eh.return.* eh.sjlj.functioncontext eh.sjlj.setup.dispatch", {}},
    // They are calls; what is called records what it does, or is told as code that does not.
    {"experimental.gc.statepoint experimental.patchpoint* experimental.deoptimize experimental.guard objc.* "
     "xray.* gcread gcwrite",
     {}},
    // What other instrumentation adds for itself.
    {"asan.* hwasan.* instrprof.*", {}},
    // Only in coroutines that have not been split, which are left alone.
    {"coro.*", {}},
};

/// Returns whether \p Name is \p Pattern, in which `*` may stand for anything.
bool isLike(StringRef Name, StringRef Pattern) {
  const size_t Star = Pattern.find('*');
  if (Star == StringRef::npos)
    return Name == Pattern;
  if (!Name.starts_with(Pattern.take_front(Star)))
    return false;
  for (size_t At = Star; At <= Name.size(); ++At)
    if (isLike(Name.substr(At), Pattern.substr(Star + 1)))
      return true;
  return false;
}

const Row *findRow(StringRef Name) {
  for (const Row &R : Rows) {
    SmallVector<StringRef, 16> Patterns;
    StringRef(R.Names).split(Patterns, ' ');
    if (any_of(Patterns, [&](StringRef Pattern) { return isLike(Name, Pattern); }))
      return &R;
  }
  return nullptr;
}

const Row *rowOf(Intrinsic::ID ID) {
  static thread_local DenseMap<unsigned, const Row *> Known;
  auto [Found, New] = Known.try_emplace(ID, nullptr);
  if (New)
    Found->second = findRow(Intrinsic::getBaseName(ID).drop_front(strlen("llvm.")));
  return Found->second;
}

Type *dataType(const IntrinsicInst &II, const IntrinsicAccess &A) {
  if (A.Data == None)
    return nullptr;
  Type *T = A.Data == Result ? II.getType() : II.getArgOperand(A.Data)->getType();
  const auto *Several = dyn_cast<StructType>(T);
  return Several ? Several->getElementType(0) : T;
}

/// The lanes of a vector; those of a word of MMX are bytes.
unsigned vectorLanes(const Type *T) {
  const auto *V = dyn_cast_or_null<FixedVectorType>(T);
  if (!V)
    return 0;
  return V->getNumElements() == 1 ? 8 : V->getNumElements();
}

/// Computes the operands of one intrinsic.
class Computer {
public:
  explicit Computer(IntrinsicInst &II) : II(II), B(&II) {}

  IntrinsicOperands operands(const IntrinsicAccess &A) {
    const unsigned Lanes = lanesOf(II, A);
    Value *Pointer = II.getArgOperand(A.Pointer);
    switch (A.Is) {
    case Form::Plain:
      return {};
    case Form::Pattern:
      return {nullptr, nullptr, B.CreateMul(number(A.Limit), B.getInt64(bytesOf(II, A)))};
    case Form::Masked:
      return {nullptr, mask(A, Lanes)};
    case Form::Gather:
      return {A.Index == None ? nullptr : scattered(Pointer, A, Lanes), mask(A, Lanes)};
    case Form::Strided:
      return {apart(Pointer, number(A.Scale), Lanes), mask(A, Lanes)};
    case Form::Columns: {
      const uint64_t Element = elementBytes(A);
      return {apart(Pointer, B.CreateMul(number(A.Scale), B.getInt64(Element)), Lanes), ones(Lanes)};
    }
    case Form::Tile:
      return {apart(Pointer, number(A.Scale), Lanes),
              A.Mask == None ? ones(Lanes) : below(number(A.Mask), Lanes)};
    }
    llvm_unreachable("every form has its operands");
  }

private:
  Value *number(int Position) { return B.CreateSExtOrTrunc(II.getArgOperand(Position), B.getInt64Ty()); }

  uint64_t elementBytes(const IntrinsicAccess &A) {
    return II.getModule()->getDataLayout().getTypeStoreSize(dataType(II, A)->getScalarType());
  }

  Value *ones(unsigned Lanes) {
    return Constant::getAllOnesValue(FixedVectorType::get(B.getInt1Ty(), Lanes));
  }

  Value *steps(unsigned Lanes) {
    SmallVector<Constant *, 64> Each;
    for (unsigned Lane = 0; Lane < Lanes; ++Lane)
      Each.push_back(B.getInt64(Lane));
    return ConstantVector::get(Each);
  }

  Value *below(Value *Limit, unsigned Lanes) {
    return B.CreateICmpULT(steps(Lanes), B.CreateVectorSplat(Lanes, Limit));
  }

  Value *first(Value *Vector, unsigned Lanes) {
    if (cast<FixedVectorType>(Vector->getType())->getNumElements() == Lanes)
      return Vector;
    SmallVector<int, 64> Each;
    for (unsigned Lane = 0; Lane < Lanes; ++Lane)
      Each.push_back(static_cast<int>(Lane));
    return B.CreateShuffleVector(Vector, Each);
  }

  /// The lanes of A.Mask that count: the bits of a number, of a vector of bits, or the signs of wider lanes.
  Value *mask(const IntrinsicAccess &A, unsigned Lanes) {
    Value *Found = ones(Lanes);
    if (A.Mask != None) {
      Found = II.getArgOperand(A.Mask);
      Type *T = Found->getType();
      if (T->isIntegerTy())
        Found = B.CreateBitCast(Found, FixedVectorType::get(B.getInt1Ty(), T->getIntegerBitWidth()));
      else if (!T->isIntOrIntVectorTy(1)) {
        const unsigned Bits = T->getPrimitiveSizeInBits().getFixedValue();
        const unsigned Number = vectorLanes(T);
        Type *Words = FixedVectorType::get(B.getIntNTy(Bits / Number), Number);
        Found = B.CreateICmpSLT(B.CreateBitCast(Found, Words), Constant::getNullValue(Words));
      }
      Found = first(Found, Lanes);
    }
    return A.Limit == None
               ? Found
               : B.CreateAnd(Found,
                             below(B.CreateZExtOrTrunc(II.getArgOperand(A.Limit), B.getInt64Ty()), Lanes));
  }

  Value *scattered(Value *Pointer, const IntrinsicAccess &A, unsigned Lanes) {
    Value *Index = first(II.getArgOperand(A.Index), Lanes);
    Value *Far = B.CreateSExt(Index, FixedVectorType::get(B.getInt64Ty(), Lanes));
    Value *Scale = B.CreateVectorSplat(Lanes, B.CreateZExtOrTrunc(II.getArgOperand(A.Scale), B.getInt64Ty()));
    return B.CreateGEP(B.getInt8Ty(), Pointer, B.CreateMul(Far, Scale));
  }

  Value *apart(Value *Pointer, Value *Distance, unsigned Lanes) {
    return B.CreateGEP(B.getInt8Ty(), Pointer,
                       B.CreateMul(steps(Lanes), B.CreateVectorSplat(Lanes, Distance)));
  }

  IntrinsicInst &II;
  IRBuilder<> B;
};

} // namespace
} // namespace intrinsics

std::optional<ArrayRef<IntrinsicAccess>> intrinsicAccesses(const IntrinsicInst &II) {
  const intrinsics::Row *Found = intrinsics::rowOf(II.getIntrinsicID());
  if (!Found)
    return {};
  return ArrayRef<IntrinsicAccess>(Found->Accesses);
}

unsigned lanesOf(const IntrinsicInst &II, const IntrinsicAccess &A) {
  const auto constant = [&](int Position) {
    const auto *Number = dyn_cast<ConstantInt>(II.getArgOperand(Position));
    return Number ? static_cast<unsigned>(Number->getLimitedValue(UINT_MAX)) : 0;
  };
  switch (A.Is) {
  case intrinsics::Form::Plain:
  case intrinsics::Form::Pattern:
    return 1;
  case intrinsics::Form::Columns:
    return constant(A.Limit);
  case intrinsics::Form::Tile:
    return intrinsics::TileRows;
  case intrinsics::Form::Masked:
  case intrinsics::Form::Strided:
    return intrinsics::vectorLanes(intrinsics::dataType(II, A));
  case intrinsics::Form::Gather: {
    // Of a histogram the places alone are a vector.
    const Value *Places = II.getArgOperand(A.Index == intrinsics::None ? A.Pointer : A.Index);
    const unsigned Lanes = intrinsics::vectorLanes(Places->getType()),
                   Data = intrinsics::vectorLanes(intrinsics::dataType(II, A));
    return Data == 0 ? Lanes : std::min(Lanes, Data);
  }
  }
  llvm_unreachable("every form has its lanes");
}

uint64_t bytesOf(const IntrinsicInst &II, const IntrinsicAccess &A) {
  const DataLayout &DL = II.getModule()->getDataLayout();
  if (A.Is == intrinsics::Form::Tile && A.Limit != intrinsics::None)
    if (const auto *Bytes = dyn_cast<ConstantInt>(II.getArgOperand(A.Limit)))
      return std::min(Bytes->getZExtValue(), intrinsics::TileRowBytes);
  if (A.Bytes != 0)
    return A.Bytes;
  Type *T = intrinsics::dataType(II, A);
  const bool IsWhole = A.Is == intrinsics::Form::Plain || A.Is == intrinsics::Form::Pattern;
  const TypeSize Bytes = DL.getTypeStoreSize(IsWhole ? T : T->getScalarType());
  if (Bytes.isScalable())
    return 0;
  if (A.Is != intrinsics::Form::Columns)
    return Bytes.getFixedValue();
  const auto *Lines = dyn_cast<ConstantInt>(II.getArgOperand(A.Mask));
  return Lines ? Bytes.getFixedValue() * Lines->getZExtValue() : 0;
}

bool IntrinsicRanges::compute(Function &F, const DenseSet<const BasicBlock *> &Dormant) {
  SmallVector<IntrinsicInst *, 8> Calls;
  for (Instruction &I : instructions(F))
    if (auto *II = dyn_cast<IntrinsicInst>(&I); II && !Dormant.contains(I.getParent()))
      if (II->mayReadOrWriteMemory() && !intrinsicAccesses(*II).value_or(ArrayRef<IntrinsicAccess>()).empty())
        Calls.push_back(II);
  for (IntrinsicInst *II : Calls) {
    unsigned Number = 0;
    for (const IntrinsicAccess &A : intrinsicAccesses(*II).value_or(ArrayRef<IntrinsicAccess>())) {
      if (lanesOf(*II, A) != 0 && bytesOf(*II, A) != 0)
        Known[{II, Number}] = intrinsics::Computer(*II).operands(A);
      ++Number;
    }
  }
  return !Calls.empty();
}

} // namespace memlode
