#!/usr/bin/env bash
# fetch.sh FOLDER PACKAGE…: unpacks Debian 12 source packages into FOLDER/PACKAGE, with an apt
# configuration of its own: the system's sources, lists and caches are neither read nor changed.
set -euo pipefail

folder=$1
shift
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/download"
folder=$(cd "$folder" && pwd)

cat >"$folder/apt/sources.list" <<SOURCES
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
SOURCES
cat >"$folder/apt/apt.conf" <<CONF
Dir::Etc::SourceList "$folder/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$folder/apt/lists";
Dir::Cache "$folder/apt/cache";
Acquire::Retries "3";
APT::Sandbox::User "root";
CONF
export APT_CONFIG="$folder/apt/apt.conf"

updated=
for package in "$@"; do
  [ -e "$folder/$package/.unpacked" ] && continue
  if [ -z "$updated" ]; then
    apt-get update -qq
    updated=yes
  fi
  (cd "$folder/download" && apt-get source -qq --download-only "$package")
  rm -rf "${folder:?}/$package"
  # Patches are Debian's own changes to paths and builds; upstream's build system is what is wanted here.
  dpkg-source --no-check --skip-patches -x "$folder/download/$package"_*.dsc "$folder/$package" >/dev/null
  touch "$folder/$package/.unpacked"
done
