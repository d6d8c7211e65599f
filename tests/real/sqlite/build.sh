#!/usr/bin/env bash
# Builds the sqlite3 shell with its own configure script and makefile, outside the source folder.
# Runs in an empty build folder; leaves ./program.
"$SOURCE/configure" --quiet --disable-tcl --disable-readline --disable-shared CC="$CC" CFLAGS="-O2 -g"
make -s sqlite3
ln -sf sqlite3 program
