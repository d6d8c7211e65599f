#!/usr/bin/env bash
# Builds the crate in $SOURCE. Runs in an empty build folder; leaves ./program.
# shellcheck disable=SC2086 # a command with arguments
host=$(rustc -vV | sed -n 's/^host: //p')
# Named here for both builds, so that both leave the program at the same place.
$CARGO_COMMAND build --release --locked --manifest-path "$SOURCE/Cargo.toml" --target "$host" --target-dir "$PWD/target"
find "target/$host/release" -maxdepth 1 -type f -perm -u+x -exec cp {} program \;
