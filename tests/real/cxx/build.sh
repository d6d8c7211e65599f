#!/usr/bin/env bash
# Compiles our own C++ program. Runs in an empty build folder; leaves ./program.
# shellcheck disable=SC2086 # a compiler with arguments
$CXX -std=c++17 -O2 -g -pthread "$SOURCE/market.cpp" -o program
