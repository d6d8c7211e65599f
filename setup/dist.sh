#!/usr/bin/env bash
# Packs what was built for other machines of this kind into dist/: a tarball to unpack anywhere, and a wheel that has the
# command, the compiler plug-ins and the run-time library beside the Python package.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=memlode-$version-linux-$(uname -m)
# Not below target/, whose files maturin leaves out.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
mkdir -p dist

DESTDIR=$work setup/install.sh "/$name" >/dev/null
cp LICENSE README.md "$tree/"
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -czf "dist/$name.tar.gz" "$name"

# In a wheel, `scripts` go where Python's programs are, and `data` below the same prefix: as in the tarball. A wheel has no
# links, so the drop-in compilers are scripts.
data=$work/memlode.data
mkdir -p "$data/scripts" "$data/data"
cp "$tree/bin/memlode" "$data/scripts/memlode"
for called in cc c++ fc clang=cc clang++=c++; do
  # shellcheck disable=SC2016 # the script expands it
  printf '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/memlode" %s "$@"\n' "${called#*=}" \
    >"$data/scripts/memlode-${called%=*}"
done
chmod 755 "$data/scripts/"*
cp -r "$tree/lib" "$tree/include" "$tree/share" "$data/data/"

# The package's own description and its sources, without what was built among them.
mkdir "$work/memlode"
cp python/memlode/*.py python/memlode/*.pyi "$work/memlode/"
sed '/^\[tool.maturin\]$/a data = "memlode.data"\nmanifest-path = "'"$PWD"'/python/Cargo.toml"' \
  python/pyproject.toml >"$work/pyproject.toml"
dist=$PWD/dist
export PATH=$PWD/target/python/bin:$PATH
rm -f dist/memlode-"$version"-*.whl
(cd "$work" && maturin build --quiet --release --compatibility linux --out "$dist")

ls -l dist/"$name".tar.gz dist/memlode-"$version"-*.whl
