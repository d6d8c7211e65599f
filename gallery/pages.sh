#!/usr/bin/env bash
# Makes the page of each program of the gallery that has a disease: target/gallery/NAME.html. Arguments are names of some.
set -euo pipefail
cd "$(dirname "$0")/.."

memlode=$PWD/target/memlode/bin/memlode
to=$PWD/target/gallery
mkdir -p "$to"
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(cd gallery && printf '%s\n' */ | tr -d /)
for name in "${names[@]}"; do
  scratch=$(mktemp -d)
  for source in gallery/"$name"/before.*; do
    compiler=cc
    [ "${source##*.}" = c ] || compiler=c++
    "$memlode" "$compiler" -O2 -g -pthread "$source" -o "$scratch/before" -lm
  done
  (cd "$scratch" && "$memlode" record -o trace -- ./before >/dev/null)
  (cd "$scratch" && "$memlode" html trace --machine generic --with rows,time,advise -o "$to/$name.html")
  rm -rf "$scratch"
done
printf 'the pages are in %s\n' "$to"
