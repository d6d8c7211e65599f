#!/usr/bin/env bash
# Runs the Lua of $1. $2 is a scratch folder, $3 this folder.
"$1" "$3/mix.lua" 4
"$1" -e 'local ok, message = pcall(error, "expected") print(ok, message)'
