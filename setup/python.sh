#!/usr/bin/env bash
# Builds the Python package and installs it into a virtual environment of its own, target/python.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=$PWD/target/python
wanted=setup/python-packages.txt
if ! cmp --quiet "$wanted" "$environment/packages.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
  cp "$wanted" "$environment/packages.txt"
fi
node=$environment/node
if ! cmp --quiet setup/node-packages.txt "$node/packages.txt"; then
  rm -rf "$node"
  mkdir "$node"
  grep -v '^#' setup/node-packages.txt |
    PATH="$environment/bin:$PATH" xargs npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$node"
  cp setup/node-packages.txt "$node/packages.txt"
fi

# The crates that the command line has, too, are in target/release already.
export VIRTUAL_ENV=$environment PATH="$environment/bin:$PATH"
maturin develop --quiet --release --manifest-path python/Cargo.toml >/dev/null
