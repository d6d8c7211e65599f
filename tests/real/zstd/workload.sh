#!/usr/bin/env bash
# Packs and unpacks a generated corpus with the zstd of $1, at three levels and in two threads.
python3 "$3/corpus.py" "$2/corpus"
for options in -1 -3 "-12 --long=20" "-3 -T2 -B300KB"; do
  # shellcheck disable=SC2086 # options are words
  "$1" -q -f $options "$2/corpus" -o "$2/corpus.zst"
  cksum <"$2/corpus.zst"
  "$1" -q -f -d "$2/corpus.zst" -o "$2/corpus.out"
  cmp "$2/corpus" "$2/corpus.out" && echo same
done
