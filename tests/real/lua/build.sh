#!/usr/bin/env bash
# Builds Lua with its own makefiles. Runs in an empty build folder; leaves ./program.
cp -r "$SOURCE/." .
make -s -C src linux CC="$CC" MYCFLAGS=-g
ln -sf src/lua program
