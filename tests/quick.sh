#!/usr/bin/env bash
# What a change may break, in minutes: quick.sh [COMMIT]. Builds what changed since the commit (the last one) and what depends
# on it; runs the tests of what changed, and a few that go all the way from a source to a report. `make test` runs the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/checked.sh
source tests/checked.sh
export PATH="$PWD/target/memlode/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 MEMLODE_RESULTS=off MEMLODE_CALIBRATE=off

# From compilers to advice; kept short.
smoke="usage compiling findings source_lines reported"

mapfile -t changed < <({ git diff --name-only "${1:-HEAD}" && git ls-files -o --exclude-standard; } | sort -u)
[ ${#changed[@]} -gt 0 ] || { echo "quick: nothing changed since ${1:-HEAD}" && exit; }

# The Python package has no Rust tests. It has features of crates of others that all share, and so these are built once.
packages=(--package memlode-cli --package memlode-python) files="$smoke" suites=() gallery=() corpus=() parts=()
for file in "${changed[@]}"; do
  case $file in
  crates/cli/*) ;;
  crates/*)
    name=${file#crates/}
    packages+=(--package "memlode-${name%%/*}")
    ;;
  xtask/*) packages+=(--package xtask) ;;
  machines/events/*) packages+=(--package memlode-counters) suites+=(events) ;;
  machines/*) packages+=(--package memlode-machine) ;;
  format/*)
    packages+=(--package memlode-trace --package memlode-collect)
    parts+=(pass-22 runtime) suites+=(lit22)
    ;;
  instrument/*) parts+=(pass-22) suites+=(lit22) ;;
  record/*)
    packages+=(--package memlode-collect)
    parts+=(runtime stdcxx) suites+=(c)
    ;;
  stagger/* | blocks/*) parts+=(runtime) suites+=(c) ;;
  python/*) suites+=(python) ;;
  tests/cli/main.rs) ;;
  tests/cli/*.rs)
    name=${file##*/}
    files+=" ${name%.rs}"
    ;;
  gallery/*/*)
    name=${file#gallery/}
    gallery+=("${name%%/*}")
    ;;
  tests/corpus/*/*.c)
    name=${file##*/}
    corpus+=("${name%.c}")
    ;;
  tests/{sharing,languages,layouts,safety,html}/*)
    name=${file#tests/}
    suites+=("${name%%/*}")
    ;;
  tests/fuzz/*.py) suites+=(fuzz) ;;
  esac
done
mapfile -t suites < <(printf '%s\n' ${suites[@]+"${suites[@]}"} | sort -u | sed '/^$/d')
mapfile -t files < <(tr ' ' '\n' <<<"$files" | sort -u)

cargo fmt --all --check
cargo xtask check
# Suites run the command line as it is installed, Rust tests the one with assertions.
[ $((${#suites[@]} + ${#gallery[@]} + ${#corpus[@]})) -eq 0 ] || parts+=(cli)
[ ${#parts[@]} -eq 0 ] || make -s "${parts[@]}"
MEMLODE_CLI_FILES="${files[*]}" cargo test --release --no-fail-fast --tests "${checked[@]}" "${packages[@]}"
[ ${#gallery[@]} -eq 0 ] || python3 tests/gallery.py "${gallery[@]}"
[ ${#corpus[@]} -eq 0 ] || python3 tests/corpus/corpus.py "${corpus[@]}"
[ ${#suites[@]} -eq 0 ] || tests/run.sh "${suites[@]}"
