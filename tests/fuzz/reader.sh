#!/usr/bin/env bash
# Coverage-guided fuzzing of everything that reads a stranger's bytes: reader.sh SECONDS [TARGET…]
# What breaks a target is kept in target/fuzz/failures; the corpus grows in target/fuzz/corpus.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=$1
shift
[ $# -gt 0 ] || set -- trace elf machine perf
out=$root/target/fuzz
mkdir -p "$out"/{seeds/elf,corpus,failures,reader}

# What `cargo fuzz` would pass. Coverage is a pass of LLVM's that the stable compiler has too; a crate's own
# flags would not do, for the dependencies must be measured as well.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$out/reader
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# With --target the flags are not for build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --quiet --release --locked --target "$host" --manifest-path "$root/tests/fuzz/reader/Cargo.toml"

python3 -B "$root/tests/fuzz/reader/seeds.py" "$out/seeds"
small=(-g0 -nostdlib -Wl,-z,noseparate-code -Wl,--hash-style=sysv)
for kind in "-shared -fPIC" "-static -s"; do
  # shellcheck disable=SC2086 # words, as the compiler wants them
  MEMLODE_HOME=$root/target/memlode "$root/target/memlode/bin/memlode" cc -O1 $kind "${small[@]}" \
    -x c "$root/tests/fuzz/reader/seed.c" -o "$out/seeds/elf/${kind%% *}" -Wl,--unresolved-symbols=ignore-all
done

status=0
for target; do
  mkdir -p "$out/corpus/$target"
  echo "== $target, $seconds s"
  nice -n 10 "$out/reader/$host/release/$target" "$out/corpus/$target" "$out/seeds/$target" \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$out/failures/$target-" >"$out/$target.log" 2>&1 || status=1
  grep -E 'stat::number_of_executed|stat::peak_rss|panicked|ERROR|Test unit' "$out/$target.log" || true
done
exit $status
