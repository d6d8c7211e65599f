//===- AddressDependence.h - what an address waits for --------------------===//
//
// Follows an address back through the values of its function to what it is made of:
//
//   chased     p = p->next; p->key     a load that finds its address in what it, or another load of the same
//                                      recurrence, found the iteration before
//   loaded     a[idx[i]], ptrs[i]->x   any other load; also behind one that was chased, as in p->data->x
//   computed   a[(i * 40503) >> 8]     no load, and arithmetic that does more than count
//
// Misses of the first kind wait for each other, those of the others can overlap. Of an address that goes in
// steps, or is a constant distance from what the function was given, nothing is said.
//
// A recurrence is a cycle of SSA values, through the phis of a loop or from a parameter to the argument of a
// direct call of the function by itself. One that goes through memory (a list's head that is stored each
// iteration) or through other functions is not seen. A variable in a stack slot that could be a register, as
// all are before optimisation, is the value stored last in the block, or any of those that are stored.
//
//===----------------------------------------------------------------------===//
#ifndef MEMLODE_INSTRUMENT_ADDRESSDEPENDENCE_H
#define MEMLODE_INSTRUMENT_ADDRESSDEPENDENCE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace memlode {

/// Serves one function and must not outlive changes to it. All questions together take time linear in its
/// length.
class Dependence {
public:
  explicit Dependence(const llvm::Function &F);

  /// MEMLODE_FLAG_* of an access to \p Pointer, or to the pointers of a vector.
  unsigned flagsOf(const llvm::Value *Pointer);

private:
  /// A value met on the way; all that are in one cycle are settled together.
  struct Node {
    unsigned Number, Lowest; ///< of Tarjan's algorithm
    bool Settled = false;
    unsigned Facts = 0; ///< about what it is made of
  };

  struct Visit {
    const llvm::Value *V;
    llvm::SmallVector<const llvm::Value *, 4> Left;
  };

  void readSlots(const llvm::Function &F);
  void follow(const llvm::Value *V);
  void open(const llvm::Value *V);
  void close();
  void settle(llvm::ArrayRef<const llvm::Value *> Cycle);
  llvm::SmallVector<const llvm::Value *, 4> sources(const llvm::Value *V) const;

  llvm::SmallVector<const llvm::CallBase *, 4> SelfCalls;
  /// Values stored in slots that could be registers.
  llvm::DenseMap<const llvm::Value *, llvm::SmallVector<const llvm::Value *, 4>> Slots;
  llvm::DenseMap<const llvm::Value *, const llvm::Value *> StoredBefore; ///< by load, in the same block

  llvm::DenseMap<const llvm::Value *, Node> Nodes;
  llvm::SmallVector<Visit, 16> Path;
  llvm::SmallVector<const llvm::Value *, 16> Unsettled;
};

} // namespace memlode
#endif
