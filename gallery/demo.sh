#!/usr/bin/env bash
# What `make demo` shows: a program with a layout disease, compiled and run by memlode.
set -euo pipefail
cd "$(dirname "$0")/.."

show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

PATH="$PWD/target/memlode/bin:$PATH"
mkdir -p target/demo
cp gallery/pricing-scan/*.[ch] target/demo/
cd target/demo
rm -rf before.trace
show memlode cc -O2 -g before.c -o before
show memlode run -o before.trace -- ./before
show memlode advise before.trace
printf '\nThe cure, and what it buys: gallery/pricing-scan/story.md\n'
# shellcheck disable=SC2016 # the variables are the reader's
printf 'Your own program: make install PREFIX=~/.local && export PATH="$HOME/.local/bin:$PATH"\n'
