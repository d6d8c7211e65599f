#!/usr/bin/env bash
# clang-tidy on our C and C++, each file with the flags that it is built with.
set -euo pipefail
cd "$(dirname "$0")/.."

pass=target/memlode/build/pass-22 # CMake wrote down how

if [ "${1:-}" != --file ]; then
  # Looking through LLVM's headers is most of the work for a file of the pass: so they are looked at as they are built, many at a time.
  cp instrument/.clang-tidy "$pass"
  {
    sed -n -E 's#.*"file": "(.*/(Unity|instrument/src)/.*)".*#\1#p' "$pass/compile_commands.json" | tr '\n' '\0'
    git ls-files -co --exclude-standard -z '*.c' '*.cpp' ':!instrument/src'
  } | xargs -0 -n 1 -P "${JOBS:-2}" setup/tidy.sh --file
  exit
fi

file=$2
case $file in
instrument/src/* | */Unity/*) flags=(-p "$pass") ;;
instrument/test/* | tests/languages/* | tests/bias/programs/array.c) exit 0 ;; # inputs of tests, odd on purpose
stagger/*.c) flags=(-- -std=c11 -D_GNU_SOURCE -Istagger/include) ;;
blocks/*.c) flags=(-- -std=c11 -D_GNU_SOURCE -Iblocks/src -Iformat/generated) ;;
record/*.c) flags=(-- -std=c11 -D_GNU_SOURCE -Irecord/include -Iformat/generated) ;;
tests/fuzz/*.cpp) flags=(-- -std=c++17 -O2 -Iinstrument/test/Inputs -Iformat/generated) ;;
*.c) flags=(-- -std=c11 -D_GNU_SOURCE -O2 -Iformat/generated) ;;
*.cpp) flags=(-- -std=c++17 -O2) ;;
esac
# The analyser gives up on a function after so many steps: a quarter of what it does unasked takes a quarter of the time.
steps=(--extra-arg={-Xclang,-analyzer-config,-Xclang,max-nodes=50000})
clang-tidy-22 --quiet --warnings-as-errors='*' "${steps[@]}" "$file" "${flags[@]}" 2> >(grep -v -E 'warnings? generated|^Suppressed|^Use -' >&2)
