#!/usr/bin/env bash
# memlode's compiler of $1 (cc or c++), with $ORACLE added to what is linked into programs.
set -euo pipefail
for option in "${@:2}"; do
  case $option in
  -c | -S | -E | -M | -MM | -shared | -r) exec "$MEMLODE" "$@" ;;
  esac
done
exec "$MEMLODE" "$@" "$ORACLE" -lstdc++ -lm
