/* Our functions of libstdc++ against the library's own: every tree has the same shape and colours, every list
 * the same links, every hash the same value.
 *
 * The library's are found by their symbols in the shared object, ours are those that the linker took.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace {

void *library() {
  static void *handle = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

/* Returns the library's function of a name, as a pointer of the type of `ours`. */
template <class F> F theirs(const char *name, F ours) {
  void *found = dlsym(library(), name);
  F function = reinterpret_cast<F>(found);
  if (!found || function == ours) {
    fprintf(stderr, "stdcxx: %s is %s\n", name, found ? "not linked" : "not in the library");
    exit(1);
  }
  return function;
}

uint64_t state = 1;
unsigned below(unsigned bound) {
  state = state * 6364136223846793005 + 1442695040888963407;
  return static_cast<unsigned>(state >> 33) % bound;
}

#define CHECK(condition)                                                                                     \
  ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

using Node = std::_Rb_tree_node_base;
struct Keyed : Node {
  unsigned key = 0;
};

/* A tree without a map around it, so that one of the two sets of functions can be chosen. */
struct Tree {
  Node header;
  std::vector<Keyed> nodes;
  std::vector<bool> there;

  explicit Tree(unsigned count) : header(), nodes(count), there(count) {
    header._M_color = std::_S_red;
    header._M_parent = nullptr;
    header._M_left = header._M_right = &header;
    for (unsigned i = 0; i < count; i++)
      nodes[i].key = i;
  }

  template <class Insert> void insert(unsigned key, Insert function) {
    Node *parent = &header;
    bool left = true;
    for (Node *at = header._M_parent; at; at = left ? at->_M_left : at->_M_right) {
      parent = at;
      left = key < static_cast<Keyed *>(at)->key;
    }
    function(left, &nodes[key], parent, header);
    there[key] = true;
  }

  /* A number for each link and colour. */
  long number(const Node *node) const {
    return !node ? -1 : node == &header ? -2 : static_cast<const Keyed *>(node) - nodes.data();
  }

  bool operator==(const Tree &other) const {
    const auto same = [&](const Node &a, const Node &b) {
      return a._M_color == b._M_color && number(a._M_left) == other.number(b._M_left) &&
             number(a._M_right) == other.number(b._M_right) &&
             number(a._M_parent) == other.number(b._M_parent);
    };
    for (size_t i = 0; i < nodes.size(); i++)
      if (there[i] && !same(nodes[i], other.nodes[i]))
        return false;
    return same(header, other.header);
  }
};

void trees() {
  using Insert = void(const bool, Node *, Node *, Node &);
  using Erase = Node *(Node *const, Node &);
  using Step = Node *(Node *);
  using Count = unsigned(const Node *, const Node *);
  Step *up = std::_Rb_tree_increment, *down = std::_Rb_tree_decrement;
  const auto insert = theirs<Insert *>("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
                                       std::_Rb_tree_insert_and_rebalance);
  const auto erase = theirs<Erase *>("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
                                     std::_Rb_tree_rebalance_for_erase);
  const auto next = theirs<Step *>("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base", up);
  const auto last = theirs<Step *>("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base", down);
  const auto blacks =
      theirs<Count *>("_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_", std::_Rb_tree_black_count);
  for (unsigned size : {1U, 2U, 3U, 5U, 8U, 20U, 300U}) {
    Tree mine(size), other(size);
    for (unsigned round = 0; round < 2000; round++) {
      const unsigned key = below(size);
      /* By turns the tree grows and shrinks. */
      const bool grows = round / 500 % 2 ? below(4) == 0 : below(4) != 0;
      if (!mine.there[key] && grows) {
        mine.insert(key, std::_Rb_tree_insert_and_rebalance);
        other.insert(key, insert);
      } else if (mine.there[key] && !grows) {
        CHECK(std::_Rb_tree_rebalance_for_erase(&mine.nodes[key], mine.header) == &mine.nodes[key]);
        CHECK(erase(&other.nodes[key], other.header) == &other.nodes[key]);
        mine.there[key] = other.there[key] = false;
      }
      CHECK(mine == other);
      if (!mine.there[key])
        continue;
      Node *node = &mine.nodes[key];
      CHECK(up(node) == next(node) && down(node) == last(node) &&
            (node == mine.header._M_left || up(down(node)) == node));
      CHECK(down(&mine.header) == last(&mine.header));
      CHECK(std::_Rb_tree_black_count(node, mine.header._M_parent) == blacks(node, mine.header._M_parent));
    }
  }
}

void hashes() {
  using Hash = size_t(const void *, size_t, size_t);
  const auto bytes = theirs<Hash *>("_ZSt11_Hash_bytesPKvmm", std::_Hash_bytes);
  const auto fnv = theirs<Hash *>("_ZSt15_Fnv_hash_bytesPKvmm", std::_Fnv_hash_bytes);
  unsigned char data[80];
  for (unsigned length = 0; length < 64; length++)
    for (unsigned round = 0; round < 20; round++) {
      for (unsigned char &byte : data)
        byte = static_cast<unsigned char>(below(256));
      const unsigned char *at = data + below(8);
      const size_t seed = round ? below(1U << 31) : 0xc70f6907;
      CHECK(std::_Hash_bytes(at, length, seed) == bytes(at, length, seed));
      CHECK(std::_Fnv_hash_bytes(at, length, seed) == fnv(at, length, seed));
    }
}

using Links = std::__detail::_List_node_base;

/* Rings of links: nodes `from` to `to`, the first of which stands for the list itself. */
struct Rings {
  Links nodes[12];
  Rings() {
    for (Links &node : nodes)
      node._M_next = node._M_prev = &node;
  }
  bool operator==(const Rings &other) const {
    for (int i = 0; i < 12; i++)
      if (nodes[i]._M_next - nodes != other.nodes[i]._M_next - other.nodes ||
          nodes[i]._M_prev - nodes != other.nodes[i]._M_prev - other.nodes)
        return false;
    return true;
  }
};

void lists() {
  /* Members are called as functions of their object, which is how the ABI calls them. */
  using Member = void(Links *, Links *);
  using Range = void(Links *, Links *, Links *);
  const auto member = [](const char *name) { return reinterpret_cast<Member *>(dlsym(library(), name)); };
  Member *hook = member("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
  Member *unhook = member("_ZNSt8__detail15_List_node_base9_M_unhookEv");
  Member *reverse = member("_ZNSt8__detail15_List_node_base10_M_reverseEv");
  Member *swap = member("_ZNSt8__detail15_List_node_base4swapERS0_S1_");
  auto *transfer =
      reinterpret_cast<Range *>(dlsym(library(), "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_"));
  CHECK(hook && unhook && reverse && swap && transfer);
  for (unsigned round = 0; round < 2000; round++) {
    Rings mine, other;
    for (unsigned i = 2; i < 12; i++) { /* two lists, each of its half */
      mine.nodes[i]._M_hook(&mine.nodes[i % 2]);
      hook(&other.nodes[i], &other.nodes[i % 2]);
    }
    CHECK(mine == other);
    const unsigned gone = 2 + below(10), list = below(2);
    mine.nodes[gone]._M_unhook();
    unhook(&other.nodes[gone], nullptr);
    mine.nodes[list]._M_reverse();
    reverse(&other.nodes[list], nullptr);
    CHECK(mine == other);
    /* All of one list goes in front of a node of the other, or of its own end. */
    const unsigned before = below(2) ? list : 1 - list;
    mine.nodes[before]._M_transfer(mine.nodes[list]._M_next, &mine.nodes[list]);
    transfer(&other.nodes[before], other.nodes[list]._M_next, &other.nodes[list]);
    CHECK(mine == other);
    Links::swap(mine.nodes[0], mine.nodes[1]);
    swap(&other.nodes[0], &other.nodes[1]);
    CHECK(mine == other);
  }
}

} // namespace

int main() {
  trees();
  hashes();
  lists();
}
