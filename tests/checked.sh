# shellcheck shell=bash
# How Rust tests are built and run, for cargo: `cargo test --release "${checked[@]}"` with this file sourced.
#
# Ours are built with assertions and checks of overflow; crates of others are those that the command line was built with.
# Optimised is what tests wait for: what decodes, places, simulates and counts.

# Whatever is drawn at random is the same each time: a change fails, or the next one does not. `PROPTEST_RNG_SEED=2 …` draws others.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}

checked=(--config "target.'cfg(all())'.runner='$PWD/tests/timed.sh'")
for crate in crates/*; do
  case $crate in
  */cli | */export | */machine | */report | */wire) level=0 ;;
  */measure) level=2 ;;
  *) level=1 ;;
  esac
  for option in opt-level=$level debug=false debug-assertions=true overflow-checks=true; do
    checked+=(--config "profile.release.package.memlode-${crate#crates/}.$option")
  done
done
unset crate level option
