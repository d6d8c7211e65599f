//===- Emit.h - code that writes a plan to the stream ---------------------===//
//
// The third step. The interface with the recorder (record/) is all here:
//
//   thread_local uint64_t *__memlode_cursor;     where the thread writes next
//   uint64_t *__memlode_refill(uint64_t *);      a cursor with room; keeps all other registers
//   uint64_t *__memlode_more(uint64_t *);        the same behind words that what follows may be derived from
//   uint64_t *__memlode_switch(uint64_t *);      the same for functions with two sides; a cursor without room
//                                                means: go over to the dormant one
//   void __memlode_dormant_1(anchor, word);      what the dormant side says of an object that comes or goes;
//   … _2, _3                                     and with more words
//   char __memlode_control[];                    begins as the shared memory does: is recording off?
//   uint32_t __memlode_others;                   not 0 once there is another thread, or one is made
//   void __memlode_module_load(const void *);    an image's events are about to begin
//   void __memlode_module_unload(const void *);  … have ended
//   const char __memlode_abi_2_link_with_memlode_cc;  exists as long as the above mean the same; linkers name
//   it
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_EMIT_H
#define MEMLODE_INSTRUMENT_EMIT_H

#include "describe/SiteTable.h"
#include "plan/Segments.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace memlode {

using CompiledFunctions = llvm::SetVector<const llvm::Function *>;

/// The module's table and anchors, and the constructor that announces the image.
class Image {
public:
  explicit Image(llvm::Module &M) : M(M) {}

  Table &table() { return Sites; }

  /// Files the segments of \p F and returns the array of their anchors.
  llvm::GlobalVariable *anchors(llvm::Function &F, const std::vector<Segment> &Segments);

  /// Writes the table and the constructor, if there is anything to describe. \p Compiled are the
  /// functions that the pass has visited.
  void finish(const CompiledFunctions &Compiled);

private:
  /// Files the facts of TimeFacts.h of the segments that begin at \p First in the table.
  void work(const std::vector<Segment> &Segments, uint32_t First);
  /// Files which of the loads that an op waits for are of the iteration before.
  void fileEarlier(const Op &Here, uint32_t Segment, unsigned Number);
  /// Files the calls behind the segments that begin at \p First.
  void calls(const std::vector<Segment> &Segments, uint32_t First);
  /// Adds the places that are not recorded to the segments that begin at \p First.
  void unrecorded(const std::vector<Segment> &Segments, uint32_t First);
  /// Adds the names of the module's functions that have no segment.
  void silent(const CompiledFunctions &Compiled);
  llvm::GlobalVariable *placeholder();
  void anchorForMarks();
  void announce();

  llvm::Module &M;
  Table Sites;
  TableList Instructions, Feeding, Branching, Earlier, Calling, Beside, Silent; ///< of sections
  llvm::StringSet<> Told; ///< names of functions that have segments
  llvm::GlobalVariable *TableVariable = nullptr;
};

/// Lists the functions of \p M: so a reader knows which code of an image the pass has not seen.
void listFunctions(llvm::Module &M);

/// Writes \p P into \p F with the cursor in a register between calls. \p Briefly, tests for room are calls.
void emitStream(llvm::Function &F, const Versions &Sides, const Plan &P, Image &Into, bool Briefly);

/// Stores the values of \p P as words, and nothing else: to one place, over and over, without a
/// cursor. This is a lower bound of the cost of any stream of these words.
void emitWords(llvm::Function &F, const Plan &P, Image &Into);

/// Calls `__memlode_call_access(anchor, address, extent)` in front of each access instead: tracing
/// without streams. The extent is the length of a range or the mask of lanes; a gather makes a call
/// for each lane.
void emitCalls(llvm::Function &F, const Plan &P, Image &Into);

} // namespace memlode
#endif
