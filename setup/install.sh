#!/usr/bin/env bash
# Copies what was built to a prefix: bin, lib, include and share. Nothing in there says where it is: it may be moved.
# DESTDIR stands in front of the prefix while packages are made.
set -euo pipefail

if [ -z "${1:-}" ]; then
  printf 'usage: make install [PREFIX=DIR] [DESTDIR=DIR]\n' >&2
  exit 2
fi
# Not every shell expands the tilde of PREFIX=~/.local.
prefix=${1/#\~\//$HOME/}
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
cd "$(dirname "$0")/.."
from=target/memlode
to=${DESTDIR:-}$prefix

# By rename: programs may be running with the old ones, and compilers about to load them.
put() { # MODE FILE
  install -m "$1" "$from/$2" "$to/$2.new"
  mv -f "$to/$2.new" "$to/$2"
}

mkdir -p "$to/bin" "$to/lib" "$to/include"
put 755 bin/memlode
for name in cc c++ fc clang clang++; do ln -sfn memlode "$to/bin/memlode-$name"; done
for pass in "$from"/lib/memlode-pass-*.so; do put 755 "lib/${pass##*/}"; done
put 755 lib/libmemlode_record.so.1
ln -sfn libmemlode_record.so.1 "$to/lib/libmemlode_record.so"
put 644 lib/libmemlode_record.a
put 644 lib/libmemlode_embed.a
put 644 lib/libmemlode_stdcxx.a
put 755 lib/libmemlode_stagger.so
put 755 lib/libmemlode_blocks.so
put 755 lib/libmemlode_library.so
put 644 include/memlode.h
put 644 include/memlode_stagger.h

# Shells and man find these below the prefix of programs on the path.
share=$to/share
mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
complete() { # SHELL FILE
  "$from/bin/memlode" completions "$1" >"$share/$2.new"
  mv -f "$share/$2.new" "$share/$2"
}
complete bash bash-completion/completions/memlode
complete zsh zsh/site-functions/_memlode
complete fish fish/vendor_completions.d/memlode.fish
"$from/bin/memlode" man "$share/man/man1"

printf 'installed in %s\n' "$to"
# Whoever makes a package does not use it from here.
if [ -z "${DESTDIR:-}" ] && [[ :$PATH: != *":$prefix/bin:"* ]]; then
  # shellcheck disable=SC2016 # the variable is the reader's
  printf 'to have it at hand: export PATH="%s/bin:$PATH"\n' "$prefix"
fi
