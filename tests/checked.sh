# shellcheck shell=bash
# How Rust tests are built and run, for cargo, with this file sourced: `cargo test --release "${timed[@]}"`, or
# `cargo test --release "${checked[@]}"`, with which our crates have assertions and checks of overflow. What tests wait
# for is optimised: what decodes, places, simulates and counts. Crates of others are those that the command line was built with.

# Whatever is drawn at random is the same each time: a change fails, or the next one does not. `PROPTEST_RNG_SEED=2 …` draws others.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}

timed=(--config "target.'cfg(all())'.runner='$PWD/tests/timed.sh'")
checked=("${timed[@]}")
for crate in crates/*; do
  case $crate in
  */cli | */counters | */export | */files | */html | */layout | */machine | */patch | */report | */results | */wire) level=0 ;;
  */measure) level=2 ;;
  *) level=1 ;;
  esac
  for option in opt-level=$level debug-assertions=true overflow-checks=true; do
    checked+=(--config "profile.release.package.memlode-${crate#crates/}.$option")
  done
done
unset crate level option
