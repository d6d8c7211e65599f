#!/usr/bin/env bash
# The compiler of $1, with optimisation and debug information off, whatever else was asked for.
exec "$@" -O0 -g0
