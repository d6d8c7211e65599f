#!/usr/bin/env bash
# Runs the tests of `memlode.spark` in other versions of Spark than that of target/python, each in an environment of its own:
# setup/spark.sh VERSION…
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/target/memlode/bin:$PATH MEMLODE_RESULTS=off
for version in "$@"; do
  environment=$PWD/target/spark/$version
  wanted=$(grep -E '^(numpy|pandas|pyarrow|moto)' setup/python-packages.txt)$'\n'pyspark==$version
  if [ "$wanted" != "$(cat "$environment/packages.txt" 2>/dev/null)" ]; then
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement <(echo "$wanted")
    # The package as `make python` built it.
    echo "$PWD/python" >"$("$environment/bin/python" -c 'import site; print(site.getsitepackages()[0])')/memlode.pth"
    echo "$wanted" >"$environment/packages.txt"
  fi
  echo "Spark $version"
  "$environment/bin/python" -B tests/python/spark.py
done
