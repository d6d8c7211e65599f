/* Strings of wchar_t; see string.cpp. */
#include <string>

template class std::basic_string<wchar_t>;
