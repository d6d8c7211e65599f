//===- Segments.h - what a function will write to its stream --------------===//
//
// A plan is made of the whole function before a single instruction changes:
//
//      block            steps
//     ┌──────────────┐
//     │ entry        │  Reload                    cursor := thread's cursor
//     │ load a       │  Segment [enter, a, b]     header, words
//     │ load b       │
//     │ call f       │  Commit                    thread's cursor := cursor
//     │              │  Reload
//     │ store c      │  Segment [c, exit]
//     │ ret          │  Commit
//     └──────────────┘
//
// A segment is a run of one block in which nothing else can record. Which steps
// need a test for room, and which commits have nothing to say, is in CursorFlow.h; what
// one address tells about another is in DerivedAddresses.h.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_SEGMENTS_H
#define MEMLODE_INSTRUMENT_SEGMENTS_H

#include "describe/Describer.h"
#include "find/Allocators.h"
#include "find/Finder.h"
#include "find/LibcBlocks.h"
#include "plan/LongLoops.h"
#include "plan/SyncPoints.h"
#include "plan/WaitingLoops.h"
#include "sides/Versions.h"

#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/Function.h"

#include <vector>

namespace memlode {

/// A word (or several) of the stream and how to compute it.
struct Word {
  enum class How {
    Value,        ///< A, a pointer or an integer
    Lanes,        ///< every pointer of the vector A: several words
    Mask,         ///< the bits of A, a vector of i1
    MaskBytes,    ///< bits set in A, times Bytes
    Frame,        ///< address of the function's return-address slot
    Product,      ///< A * B
    Mapped,       ///< A, or 0 if it is MAP_FAILED
    Stamp,        ///< the time stamp counter, when all before it is done
    LooseStamp,   ///< the time stamp counter, perhaps a little earlier
    FirstStamp,   ///< the same, also as long as nobody else records
    Stored,       ///< the pointer stored at A, which the call reads or has written
    StoredIfZero, ///< the pointer stored at A, or 0 if B is not 0: then the call has written none
    Moved,        ///< A, as it lies in memory: Bytes of it
    Before,       ///< what was in memory before the update A, likewise
    After,        ///< what is there after it
    Text,         ///< A, or 0 if the program defines the function B that made the string itself
    TextBytes,    ///< the bytes of the string at A, likewise
    Described     ///< the bytes of the array whose Fortran descriptor is at A
  };
  How Computed = How::Value;
  llvm::Value *A = nullptr;
  llvm::Value *B = nullptr;
  uint64_t Bytes = 0;

  unsigned count() const;
};

/// A load of which a value is made.
struct Feed {
  const llvm::Instruction *Load;
  /// The value is of the iteration of a loop before, and the load is executed again before the value is used.
  bool IsEarlier;

  bool operator==(const Feed &O) const { return Load == O.Load && IsEarlier == O.IsEarlier; }
};

/// Loads on which a value depends: all groups, and of each group the load that was executed last.
using Feeds = std::vector<llvm::SmallVector<Feed, 2>>;

/// One step of a segment.
struct Op {
  uint8_t Code = 0;                    ///< MEMLODE_OP_*
  llvm::Instruction *Before = nullptr; ///< its words are stored in front of this instruction
  uint32_t Site = 0;
  unsigned Lanes = 0;
  uint8_t Sync = 0;                 ///< MEMLODE_SYNC_*
  llvm::Value *Address = nullptr;   ///< of the ops that have an address operand
  llvm::Value *Length = nullptr;    ///< of a range that is as long as the program says
  llvm::SmallVector<Word, 3> Words; ///< what follows the address and the length

  /// The distance back to the op that has the address (the length); 0: it is a word of the stream.
  unsigned AddressFrom = 0;
  int64_t AddressDelta = 0;
  unsigned LengthFrom = 0;
  int64_t Step = 0; ///< of a stride
  /// The distance back to the segment whose word FromWord determines the address of an access; 0:
  /// none.
  unsigned FromSegment = 0;
  unsigned FromWord = 0;

  const llvm::Instruction *Of = nullptr; ///< whose access it is
  unsigned Instructions = 0;             ///< from the access before to this one (TimeFacts.h)
  Feeds AddressFeeds, DataFeeds;         ///< what it waits for (TimeFacts.h)
  Feeds BranchFeeds;                     ///< what the branches behind it wait for (TimeFacts.h)
  bool BranchesElsewhere = false;        ///< some depend on what another function does

  /// Returns whether the address is a word of the stream.
  bool addressIsWord() const { return Address && AddressFrom == 0 && FromSegment == 0; }
  unsigned words() const;
  /// Appends the op as the site table describes it.
  void encode(llvm::SmallVectorImpl<char> &Out) const;
};

/// A call that may come behind a segment.
struct NextCall {
  const llvm::CallBase *Call;
  bool IsExact; ///< it enters the function that it names, or none
};

/// A place in the code that touches memory and is not recorded.
struct Unrecorded {
  const llvm::Instruction *Where;
  uint8_t Reason;         ///< MEMLODE_LEFT_OUT_*
  llvm::StringRef Callee; ///< the function that a call enters, if it is one
};

struct Segment {
  std::vector<Op> Ops;
  bool TestsRoom = false;
  /// True if nothing was written since a call or since sides could be changed. Only then may
  /// recording resume at the test: later words may be derived from earlier ones.
  bool Fresh = false;
  unsigned Rest = 0; ///< instructions behind its last access (TimeFacts.h)
  /// The calls that may come between it and the function's next segment (CallSites.h).
  llvm::SmallVector<NextCall, 1> Calls;
  /// The places that are executed as often as the segment (UnrecordedPlaces.h).
  std::vector<Unrecorded> Beside;
  llvm::Instruction *Here = nullptr; ///< in front of which it stands, if it has no ops

  /// The instruction in front of which its header is stored.
  llvm::Instruction *first() const { return Ops.empty() ? Here : Ops.front().Before; }

  /// Header included.
  unsigned words() const;
};

struct Step {
  enum class What { Segment, Commit, Reload, Switch };
  What Is;
  unsigned Segment = 0;                ///< index into the plan's segments
  llvm::Instruction *Before = nullptr; ///< of a commit or a reload; the branch of a switch
};

struct BlockPlan {
  llvm::BasicBlock *Block = nullptr;
  std::vector<Step> Steps;
};

/// The dormant side's word of an object: it comes or goes.
struct DormantStep {
  llvm::CallBase *Call = nullptr; ///< the call that makes or ends it
  unsigned Segment = 0;           ///< of a stamp and an op, in which no address is derived
};

/// A call that says which blocks libc made: it is given the anchor of a segment of a stamp and an op, which
/// it records itself.
struct ReportStep {
  llvm::CallBase *Call = nullptr;
  unsigned Argument = 0; ///< the place of the anchor
  unsigned Segment = 0;
};

struct Plan {
  std::vector<Segment> Segments;
  std::vector<BlockPlan> Blocks; ///< reachable blocks in reverse post-order
  std::vector<DormantStep> Dormant;
  std::vector<ReportStep> Reports;

  /// True if there is anything to record: an access, or a call that may record.
  bool Useful = false;
};

/// Brings \p F into the form that planning expects: static allocas in front, edges of invokes to themselves,
/// a return behind every call in tail position. Returns whether anything changed.
bool prepare(llvm::Function &F);

/// The nearest instruction in front of \p Before in its block that becomes code, or null.
llvm::Instruction *lastEffect(const llvm::Instruction &Before);

class Planner {
public:
  Planner(llvm::Function &F, const Versions &Sides, const Finder &Accesses, const Allocators &Functions,
          const LibcBlocks &Blocks, const llvm::TargetLibraryInfo &TLI, Describer &Sites,
          llvm::OptimizationRemarkEmitter &Remarks, bool Stamps, const StampBlocks &Stamped,
          const Polls &Looks, const AwaitedMemory &Awaited)
      : F(F), Sides(Sides), Accesses(Accesses), Functions(Functions), Blocks(Blocks), TLI(TLI), Sites(Sites),
        Remarks(Remarks), Frames(Sites.frames()), Stamps(Stamps), Stamped(Stamped), Looks(Looks),
        Awaited(Awaited) {}

  Plan plan();

private:
  void block(llvm::BasicBlock &B);
  void begin(llvm::BasicBlock &B, llvm::Instruction *&First);
  void instruction(llvm::Instruction &I);
  void opsOf(llvm::Instruction &I);
  bool handsOver(const llvm::Instruction &I);
  bool wanted(const Verdict &V, const llvm::Instruction &I);
  void access(const Access &A);
  Op valueOf(const Access &A);
  const Allocator *allocatorOf(const llvm::CallBase &Call);
  void released(llvm::CallBase &Call);
  void returned(llvm::Instruction &I, llvm::Instruction *After);
  void allocated(llvm::CallBase &Call, const Allocator &A, llvm::Instruction *After);
  void reported(llvm::CallBase &Call, const BlockReport &Told);
  void whileDormant(llvm::CallBase &Call, llvm::CallBase &Copy);
  void frame(uint8_t Code, llvm::Instruction *Before);
  void stamp(llvm::Instruction *Before, Word::How How);
  void sync(llvm::Instruction *Before, llvm::CallBase &Call, const SyncCall &What);
  void sync(llvm::Instruction *Before, llvm::Value *Object, uint8_t Kind);
  Op syncOp(llvm::Instruction *Before, uint8_t Kind);
  void syncOfBody(llvm::Instruction *Before, int64_t Distance, uint8_t Kind);
  void exit(llvm::Instruction *Before);
  /// Adds \p O to the open segment, or to a new one if \p O and \p Behind words do not fit.
  void add(Op O, unsigned Behind = 0);
  void commit(llvm::Instruction *Before);
  void reload(llvm::Instruction *Before);
  void missed(const char *Remark, const llvm::Instruction &I, const llvm::Twine &Why);

  llvm::Function &F;
  const Versions &Sides;
  const Finder &Accesses;
  const Allocators &Functions;
  const LibcBlocks &Blocks;
  const llvm::TargetLibraryInfo &TLI;
  Describer &Sites;
  llvm::OptimizationRemarkEmitter &Remarks;
  const bool Frames; ///< whether entries and exits are recorded
  const bool Stamps; ///< whether they are asked for
  const StampBlocks &Stamped;
  const Polls &Looks;
  const AwaitedMemory &Awaited;

  Plan Made;
  std::vector<Step> *Steps = nullptr; ///< of the block at hand
  bool Behind = false;                ///< whether the access at hand is recorded behind its instruction
  bool Open = false;                  ///< whether its last step is a segment that may grow
  unsigned OpenWords = 0;             ///< words of that segment
};

} // namespace memlode
#endif
