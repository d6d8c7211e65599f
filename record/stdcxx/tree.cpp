/* The red-black trees of libstdc++'s maps and sets: what they keep out of their headers.
 *
 * In libstdc++ the walk of a map is code that was compiled without memlode, and no access of it would
 * be recorded. Programs link these instead: for each function of the library's interface one that
 * leaves every tree as the library does, node by node (record/test/stdcxx.cpp compares them).
 */
#include <map>

namespace std {
namespace {

using Node = _Rb_tree_node_base;

bool is_red(const Node *node) { return node && node->_M_color == _S_red; }

/* The place that holds the address of `node`: the root, or a child of its parent. */
Node *&link_of(Node *node, Node *&root) {
  Node *parent = node->_M_parent;
  if (node == root)
    return root;
  return node == parent->_M_left ? parent->_M_left : parent->_M_right;
}

/* Lifts the right (left) child of `node` to its place. */
void rotate_left(Node *node, Node *&root) {
  Node *lifted = node->_M_right;
  node->_M_right = lifted->_M_left;
  if (lifted->_M_left)
    lifted->_M_left->_M_parent = node;
  lifted->_M_parent = node->_M_parent;
  link_of(node, root) = lifted;
  lifted->_M_left = node;
  node->_M_parent = lifted;
}

void rotate_right(Node *node, Node *&root) {
  Node *lifted = node->_M_left;
  node->_M_left = lifted->_M_right;
  if (lifted->_M_right)
    lifted->_M_right->_M_parent = node;
  lifted->_M_parent = node->_M_parent;
  link_of(node, root) = lifted;
  lifted->_M_right = node;
  node->_M_parent = lifted;
}

Node *leftmost(Node *node) {
  while (node->_M_left)
    node = node->_M_left;
  return node;
}

Node *rightmost(Node *node) {
  while (node->_M_right)
    node = node->_M_right;
  return node;
}

/* A black node is missing on the way through `node`, which may be none, below `parent`. */
void restore_black(Node *node, Node *parent, Node *&root) {
  while (node != root && !is_red(node)) {
    const bool is_left = node == parent->_M_left;
    const auto toward = is_left ? rotate_left : rotate_right;
    const auto away = is_left ? rotate_right : rotate_left;
    const auto near = is_left ? &Node::_M_left : &Node::_M_right;
    const auto far = is_left ? &Node::_M_right : &Node::_M_left;
    Node *sibling = parent->*far;
    if (sibling->_M_color == _S_red) {
      sibling->_M_color = _S_black;
      parent->_M_color = _S_red;
      toward(parent, root);
      sibling = parent->*far;
    }
    if (!is_red(sibling->_M_left) && !is_red(sibling->_M_right)) {
      sibling->_M_color = _S_red;
      node = parent;
      parent = parent->_M_parent;
      continue;
    }
    if (!is_red(sibling->*far)) {
      (sibling->*near)->_M_color = _S_black;
      sibling->_M_color = _S_red;
      away(sibling, root);
      sibling = parent->*far;
    }
    sibling->_M_color = parent->_M_color;
    parent->_M_color = _S_black;
    if (sibling->*far)
      (sibling->*far)->_M_color = _S_black;
    toward(parent, root);
    break;
  }
  if (node)
    node->_M_color = _S_black;
}

} // namespace

Node *_Rb_tree_increment(Node *node) throw() {
  if (node->_M_right)
    return leftmost(node->_M_right);
  Node *parent = node->_M_parent;
  while (node == parent->_M_right) {
    node = parent;
    parent = parent->_M_parent;
  }
  /* From the last node the way leads to the header, which is the root's parent, and the root its. */
  return node->_M_right == parent ? node : parent;
}

Node *_Rb_tree_decrement(Node *node) throw() {
  if (node->_M_color == _S_red && node->_M_parent->_M_parent == node)
    return node->_M_right; /* of the header: the last */
  if (node->_M_left)
    return rightmost(node->_M_left);
  Node *parent = node->_M_parent;
  while (node == parent->_M_left) {
    node = parent;
    parent = parent->_M_parent;
  }
  return parent;
}

const Node *_Rb_tree_increment(const Node *node) throw() {
  return _Rb_tree_increment(const_cast<Node *>(node));
}

const Node *_Rb_tree_decrement(const Node *node) throw() {
  return _Rb_tree_decrement(const_cast<Node *>(node));
}

/* Nothing calls these any more, but they are in the library's file with the others. */
void _Rb_tree_rotate_left(Node *const node, Node *&root) { rotate_left(node, root); }
void _Rb_tree_rotate_right(Node *const node, Node *&root) { rotate_right(node, root); }

unsigned _Rb_tree_black_count(const Node *node, const Node *root) throw() {
  unsigned count = 0;
  for (; node; node = node == root ? nullptr : node->_M_parent)
    count += node->_M_color == _S_black;
  return count;
}

void _Rb_tree_insert_and_rebalance(const bool left, Node *node, Node *parent, Node &header) throw() {
  Node *&root = header._M_parent;
  node->_M_parent = parent;
  node->_M_left = node->_M_right = nullptr;
  node->_M_color = _S_red;
  if (left) {
    parent->_M_left = node; /* of the header: the first */
    if (parent == &header)
      header._M_parent = header._M_right = node;
    else if (parent == header._M_left)
      header._M_left = node;
  } else {
    parent->_M_right = node;
    if (parent == header._M_right)
      header._M_right = node;
  }
  while (node != root && node->_M_parent->_M_color == _S_red) {
    Node *above = node->_M_parent->_M_parent;
    const bool is_left = node->_M_parent == above->_M_left;
    const auto toward = is_left ? rotate_left : rotate_right;
    const auto away = is_left ? rotate_right : rotate_left;
    Node *uncle = is_left ? above->_M_right : above->_M_left;
    if (is_red(uncle)) {
      node->_M_parent->_M_color = uncle->_M_color = _S_black;
      above->_M_color = _S_red;
      node = above;
      continue;
    }
    if (node == (is_left ? node->_M_parent->_M_right : node->_M_parent->_M_left)) {
      node = node->_M_parent;
      toward(node, root);
    }
    node->_M_parent->_M_color = _S_black;
    above->_M_color = _S_red;
    away(above, root);
  }
  root->_M_color = _S_black;
}

/* Takes `gone` out of the tree and returns it. */
Node *_Rb_tree_rebalance_for_erase(Node *const gone, Node &header) throw() {
  Node *&root = header._M_parent;
  Node *moved = nullptr; /* up, to the place that becomes free */
  Node *parent = nullptr;
  _Rb_tree_color lost = gone->_M_color;
  if (gone->_M_left && gone->_M_right) {
    /* The next node takes its place and its colour. */
    Node *heir = leftmost(gone->_M_right);
    moved = heir->_M_right;
    lost = heir->_M_color;
    gone->_M_left->_M_parent = heir;
    heir->_M_left = gone->_M_left;
    parent = heir;
    if (heir != gone->_M_right) {
      parent = heir->_M_parent;
      if (moved)
        moved->_M_parent = parent;
      parent->_M_left = moved;
      heir->_M_right = gone->_M_right;
      gone->_M_right->_M_parent = heir;
    }
    link_of(gone, root) = heir;
    heir->_M_parent = gone->_M_parent;
    heir->_M_color = gone->_M_color;
    gone->_M_color = lost;
  } else {
    moved = gone->_M_left ? gone->_M_left : gone->_M_right;
    parent = gone->_M_parent;
    if (moved)
      moved->_M_parent = parent;
    link_of(gone, root) = moved;
    if (header._M_left == gone)
      header._M_left = moved ? leftmost(moved) : parent;
    if (header._M_right == gone)
      header._M_right = moved ? rightmost(moved) : parent;
  }
  if (lost == _S_black)
    restore_black(moved, parent, root);
  return gone;
}

} // namespace std
