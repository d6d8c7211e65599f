#!/usr/bin/env bash
# Writes down anew what perf says of each recording: expected.sh, with linux-perf (6.1) and zstd installed.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
for recording in *.data *.data.zst; do
  name=${recording%%.*}
  case $recording in
  *.zst) zstd -qd "$recording" -o "$scratch/$name" ;;
  *) cp "$recording" "$scratch/$name" ;;
  esac
  # Each sample, its fields that are no address of the file's, and the event.
  perf script -D -F event -i "$scratch/$name" 2>/dev/null | LC_ALL=C grep -aE \
    'PERF_RECORD_SAMPLE|^\.\.\. weight:|^ \. data_src:|^[^.0-9]*cpu/mem|^MEM_' | sed 's/ *$//' >"$name.txt"
done
