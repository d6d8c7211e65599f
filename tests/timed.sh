#!/usr/bin/env bash
# Runs a test program for cargo, and writes down the processor time that it and its children take: a line of seconds and
# name in the file MEMLODE_TEST_TIMES. Of the tests of the command line, each file is a line of its own, and those files alone are
# run that MEMLODE_CLI_FILES names.
set -uo pipefail

program=$1
shift
name=${program##*/}
name=${name%-*}

# shellcheck source=tests/spent.sh
source "$(dirname "$0")/spent.sh"

status=0
timed() { # NAME ARGUMENT…
  local before
  spent
  before=$REPLY
  "$program" "${@:2}" || status=$?
  spent
  [ -z "${MEMLODE_TEST_TIMES:-}" ] || echo "$(((REPLY - before) / 100)) $1" >>"$MEMLODE_TEST_TIMES"
}

if [ "$name" = cli ] && [ $# -eq 0 ]; then
  mapfile -t tests < <("$program" --list --format terse | sed -n 's/: test$//p')
  read -r -a files <<<"${MEMLODE_CLI_FILES:-$(printf '%s\n' "${tests[@]%%::*}" | sort -u | xargs)}"
  for file in "${files[@]}"; do
    mapfile -t chosen < <(printf '%s\n' "${tests[@]}" | grep "^$file::")
    [ ${#chosen[@]} -eq 0 ] || timed "tests/cli/$file.rs" --exact "${chosen[@]}"
  done
else
  # Unit tests are called by the crate, the other ones by the crate and their file.
  [[ $name = memlode* ]] || name=${CARGO_PKG_NAME:-}/$name
  timed "$name" "$@"
fi
exit "$status"
