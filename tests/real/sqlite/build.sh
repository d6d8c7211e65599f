#!/usr/bin/env bash
# Builds the sqlite3 shell with its own configure script and makefile, outside the source folder.
# Runs in an empty build folder; leaves ./program.
"$SOURCE/configure" --quiet --disable-tcl --disable-readline --disable-shared CC="$CC" CFLAGS="-O2 -g"
# Without the extensions of the shell, of which the workload has no use: they are what takes long to compile.
make -s sqlite3 SHELL_OPT=
ln -sf sqlite3 program
