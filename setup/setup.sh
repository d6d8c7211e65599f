#!/usr/bin/env bash
# Installs what building memlode needs on Debian 12, and with `checks` what testing it needs, too: Debian packages, and
# nothing else. Safe to run again; when nothing is missing it only asks dpkg and leaves.
set -euo pipefail
cd "$(dirname "$0")"

checks=${1:-}

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Of a list, what stands above `[checks]`; or all.
listed() {
  local stop=Q
  [ -z "$checks" ] || stop=d
  sed -e "/^\[checks\]\$/$stop" -e 's/[[:space:]]*#.*//' -e '/^$/d' "$1"
}

missing_from() {
  local package
  while read -r package; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done < <(listed "$1")
}

# Is version $1 at least version $2?
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

rust_wanted() { sed -n 's/^rust-version = "\(.*\)"/\1/p' ../Cargo.toml; }

rust_found() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }

rust_is_there() {
  local found
  found=$(rust_found)
  [ -n "$found" ] && at_least "$found" "$(rust_wanted)" &&
    { [ -z "$checks" ] || { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; }
}

# Other package managers may hold the lock for a while, and mirrors have bad moments.
apt_get() {
  local try
  for try in 1 2 3 4 5; do
    if $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
      -o APT::Install-Recommends=false -y -q "$@" >>"$log" 2>&1; then
      return 0
    fi
    say "apt-get $1 failed (try $try of 5); $log ends with:"
    tail -n 5 "$log"
    sleep $((try * 5))
  done
  return 1
}

wanted=$(missing_from debian-packages.txt)
rust_is_there || wanted="$wanted $(missing_from rust-packages.txt)"
wanted=$(echo "$wanted" | xargs)
[ -n "$wanted" ] || exit 0

command -v apt-get >/dev/null ||
  fail "this is not Debian or a relative of it (no apt-get). Install by hand what setup/debian-packages.txt lists."
sudo=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "installing packages takes root: run 'make setup' as root, or install sudo. Missing: $wanted"
  sudo=sudo
fi

mkdir -p ../target
log=$(realpath ../target/setup.log)
say "installing $wanted (a minute or two; details in target/setup.log)"
apt_get update || fail "apt-get update failed: is there a network, and is Debian's mirror reachable?"
# shellcheck disable=SC2086 # a list of words
apt_get install $wanted ||
  fail "apt-get could not install: $wanted. LLVM 22 comes from bookworm-security: see that your apt sources include it."

rust_is_there ||
  fail "cargo $(rust_wanted) or newer with rustfmt and clippy is needed, found '$(rust_found)'. Update it (rustup update stable; rustup component add rustfmt clippy), or take it off PATH so that Debian's is found."
say "done"
