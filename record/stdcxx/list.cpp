/* The links of libstdc++'s lists; see tree.cpp. */
#include <list>

namespace std::__detail {

using Node = _List_node_base;

void Node::_M_hook(Node *const before) noexcept {
  _M_next = before;
  _M_prev = before->_M_prev;
  before->_M_prev->_M_next = this;
  before->_M_prev = this;
}

void Node::_M_unhook() noexcept {
  _M_next->_M_prev = _M_prev;
  _M_prev->_M_next = _M_next;
}

/* Moves what is in [first, last) in front of this. */
void Node::_M_transfer(Node *const first, Node *const last) noexcept {
  if (this == last)
    return;
  last->_M_prev->_M_next = this;
  first->_M_prev->_M_next = last;
  _M_prev->_M_next = first;
  Node *end = _M_prev;
  _M_prev = last->_M_prev;
  last->_M_prev = first->_M_prev;
  first->_M_prev = end;
}

void Node::_M_reverse() noexcept {
  Node *node = this;
  do {
    Node *after = node->_M_next;
    node->_M_next = node->_M_prev;
    node->_M_prev = after;
    node = after;
  } while (node != this);
}

void Node::swap(Node &one, Node &other) noexcept {
  const bool is_empty = one._M_next == &one, is_other_empty = other._M_next == &other;
  const Node kept = one;
  if (is_other_empty)
    one._M_next = one._M_prev = &one;
  else {
    one = other;
    one._M_next->_M_prev = one._M_prev->_M_next = &one;
  }
  if (is_empty)
    other._M_next = other._M_prev = &other;
  else {
    other = kept;
    other._M_next->_M_prev = other._M_prev->_M_next = &other;
  }
}

} // namespace std::__detail
