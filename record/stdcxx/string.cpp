/* Strings of char; see tree.cpp. Their functions are templates that libstdc++ has compiled already, so
 * programs of C++17 and before call these there, and the blocks of long strings came from nowhere. Compiled
 * here from the same headers, they do the same.
 */
#include <string>

template class std::basic_string<char>;
