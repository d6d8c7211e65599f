#!/usr/bin/env bash
# Runs the test suites named one after the other, or all of them, two at a time, and ends with one line that counts them.
# `make test` builds first; a suite that fails does not stop the others.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export PATH="$PWD/target/memlode/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
# What is tested is what is computed, not what was kept.
export MEMLODE_RESULTS=off
# Nor does it depend on how fast the caches of this machine are.
export MEMLODE_CALIBRATE=off
# shellcheck source=tests/checked.sh
source tests/checked.sh
# shellcheck source=tests/spent.sh
source tests/spent.sh

# The command line's tests run the binary that `make build` made, in half the time of one with assertions.
# The examples are what the benchmarks run; clippy sees that they compile.
suite_rust() {
  cargo test --release --no-fail-fast --bin memlode --test cli "${timed[@]}" &&
    cargo test --release --no-fail-fast --workspace --exclude memlode-cli --tests "${checked[@]}" &&
    cargo test --quiet --release --doc "${checked[@]}"
}

suite_c() {
  make -s -C record check CC=clang-22 && make -s -C record/stdcxx check && make -s -C stagger check CC=clang-22 && make -s -C blocks check CC=clang-22
}

# And whether the machine's libc has a function that is in no list.
suite_lit22() { make -s -C instrument check LLVM=22 && python3 tests/libc/libc.py; }

suite_lit19() { make -s -C instrument check LLVM=19; }

# The package, tables of results, SQL and Parquet, the tutorial's text, the guide's commands, analyses in parts, these of traces elsewhere, and in Spark.
suite_python() {
  setup/python.sh && target/python/bin/python tests/python/package.py &&
    target/python/bin/python -B tests/python/results.py &&
    PATH=$PWD/target/python/bin:$PATH python -B tests/python/sql.py &&
    target/python/bin/python tests/python/exports.py &&
    target/python/bin/python -B tests/python/json_schema.py && target/python/bin/python tests/python/tutorial.py &&
    PATH=$PWD/target/python/bin:$PATH python -B tests/guide.py &&
    target/python/bin/python -B tests/python/parts.py && target/python/bin/python -B tests/python/elsewhere.py &&
    target/python/bin/python -B tests/python/spark.py
}

# The tarball and the wheel. In the virtual environment is what makes a wheel.
suite_ship() { setup/python.sh && setup/dist.sh && python3 -B tests/ship.py; }

# Codes of events against libpfm4's.
suite_events() { python3 tests/events.py; }
# In the same virtual environment, whose Python drives the browser.
suite_html() { setup/python.sh && target/python/bin/python tests/html/html.py; }

suite_newcomer() { tests/newcomer.sh && python3 -B tests/builds/builds.py; }

suite_gallery() { python3 tests/gallery.py; }

suite_corpus() { python3 tests/corpus/corpus.py; }

suite_safety() { python3 tests/safety/safety.py; }

suite_sharing() { python3 tests/sharing/sharing.py; }

suite_languages() { python3 tests/languages/languages.py; }

# Debian's Python has the library that reads debug information.
suite_layouts() { /usr/bin/python3 -B tests/layouts/layouts.py; }

suite_real() { python3 tests/real/real.py; }

# The programs of a few seeds; `make fuzz` goes on with others.
suite_fuzz() { python3 tests/fuzz/fuzz.py --seeds 1-8; }

# Kernels, programs of others and a corpus. SQLite, compiled for three minutes, is for `tests/oracle/oracle.py sqlite`.
suite_oracle() { python3 tests/oracle/oracle.py && python3 tests/oracle/instructions.py; }

# That it works: two of its programs, one of them with threads.
suite_bench() { python3 bench/record.py --quick --rounds 1 --out target/bench/quick.json pricing counters; }

# Suites of a line run one after the other: they build the same programs, or wait for the same lock. Two lines run beside
# each other, as most suites wait for one core; whichever ends first makes room for the next, so the longest are first.
lines=(
  "rust"
  "real oracle fuzz bench"
  "safety"
  "gallery"
  "python ship html"
  "lit22 lit19 c newcomer events"
  "corpus sharing languages layouts"
)

# One suite. Says how it went, also in the file of results.
run_suite() {
  local started=$SECONDS how="passed in" before
  echo "== $1"
  spent
  before=$REPLY
  "suite_$1" || how="FAILED after"
  spent
  echo "== $1 $how $((SECONDS - started)) s, $(((REPLY - before) / 100)) s of processor time"
  echo "$1 $how" >>"$work/results"
  echo "$(((REPLY - before) / 100)) $1" >>"$work/suites"
}

# Lines that nobody has begun, until there is none. What a suite prints comes as a whole, and the end of what a failed one
# printed once more at the end of everything.
run_lines() {
  local line suite log
  log=$(mktemp)
  while line=$(next_line) && [ -n "$line" ]; do
    for suite in $line; do
      run_suite "$suite" >"$log" 2>&1
      flock "$work/results" cat "$log"
      ! tail -n 1 "$log" | grep -q FAILED || tail -n 20 "$log" >>"$work/ends"
    done
  done
  rm "$log"
}

# Takes the first line of those that are left.
next_line() {
  flock "$work/lock" sed -i -e "1w /dev/stdout" -e 1d "$work/left"
}

# Says where processor time went, and fails if a file of Rust tests takes more than it may: it would be waited for each time.
slowest() {
  local limit_s=150 seconds name too_slow=0
  echo "seconds of processor time: $(sort -rn "$work/suites" | awk '{ printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }')"
  [ -s "$MEMLODE_TEST_TIMES" ] || return 0
  echo "slowest Rust tests: $(sort -rn "$MEMLODE_TEST_TIMES" | awk 'NR <= 12 { printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }')"
  while read -r seconds name; do
    if [ "$seconds" -gt "$limit_s" ]; then
      echo "FAILED: $name takes $seconds s of processor time, more than $limit_s"
      too_slow=1
    fi
  done <"$MEMLODE_TEST_TIMES"
  return $too_slow
}

work=$(mktemp -d)
touch "$work"/{results,ends,suites,times,lock}
export MEMLODE_TEST_TIMES=$work/times
trap 'rm -rf "$work"' EXIT
for suite; do
  if ! declare -F "suite_$suite" >/dev/null; then
    echo "tests/run.sh: no suite called '$suite'; there are: ${lines[*]}" >&2
    exit 2
  fi
done
if [ $# -gt 0 ]; then
  wanted=$#
  for suite; do run_suite "$suite"; done
else
  wanted=$(wc -w <<<"${lines[*]}")
  printf '%s\n' "${lines[@]}" >"$work/left"
  run_lines &
  run_lines &
  wait
fi
# Whatever did not come to its end has failed.
cat "$work/ends"
slow=0
slowest || slow=1
passed=$(grep -c "passed in" "$work/results")
[ "$passed" -eq "$wanted" ] || echo "failed suites: $(grep FAILED "$work/results" | cut -d' ' -f1 | paste -sd' ')"
echo "$passed passed, $((wanted - passed)) failed"
[ "$passed" -eq "$wanted" ] && [ "$slow" -eq 0 ]
