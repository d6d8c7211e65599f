#!/usr/bin/env bash
# What a newcomer does, where nothing but Debian's packages is: install, compile, run, report, copy the program elsewhere, run
# again. The root is one of our own, with the system's programs and no source tree; the environment is empty.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{opt,proc,dev,tmp,home}
chmod 1777 "$root/tmp"
DESTDIR=$root "$repository/setup/install.sh" /opt/memlode >/dev/null

cat >"$root/home/script" <<'SCRIPT'
set -euo pipefail
fail() { printf 'newcomer: %s\n' "$*" >&2; exit 1; }
expect() { # WORDS FILE
  grep -q -e "$1" "$2" || { cat "$2" >&2; fail "no '$1' in $2"; }
}
export PATH=/opt/memlode/bin:/usr/bin:/bin
cd /home
sum=14999850000 # what the program prints

memlode doctor >doctor || { cat doctor >&2; fail "doctor finds something missing"; }

cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
struct item { long key; char rest[56]; };
int main(void) {
  long n = 100000, sum = 0;
  struct item *items = malloc(n * sizeof *items);
  for (long i = 0; i < n; i++)
    items[i].key = i;
  for (int pass = 0; pass < 3; pass++) {
    __asm__ volatile("" ::: "memory"); // so that no two passes become one
    for (long i = 0; i < n; i++)
      sum += items[i].key; // the line
  }
  printf("%ld\n", sum);
  return 3;
}
C
memlode-cc -O2 prog.c -o prog 2>compiling || { cat compiling >&2; fail "it does not compile"; }
[ ! -s compiling ] || { cat compiling >&2; fail "compiling says something"; }
status=0
./prog >alone || status=$?
[ "$status" = 3 ] && [ "$(cat alone)" = "$sum" ] || fail "it is not itself: $status"

# Runs a program under memlode, in a folder of its own.
recorded() { # PROGRAM FOLDER
  mkdir -p "$2"
  status=0
  (cd "$2" && memlode run -m generic -- "$1" >out 2>report) || status=$?
  [ "$status" = 3 ] || { cat "$2/report" >&2; fail "$1 has status $status"; }
  [ "$(cat "$2/out")" = "$sum" ] || fail "$1 prints something else"
  expect 'item.key  prog.c:12' "$2/report"
}
recorded ./../prog here
memlode report here/memlode-prog-trace -m generic >again
expect 'item.key  prog.c:12' again
memlode check here/memlode-prog-trace >checked
expect '^whole: ' checked

# Elsewhere, without its source.
mkdir /elsewhere
cp prog /elsewhere/program
memlode-cc --static-runtime -O2 prog.c -o /elsewhere/whole
rm prog.c
recorded /elsewhere/program there
# And by itself, with nothing in its environment.
status=0
env -i /elsewhere/program >alone || status=$?
[ "$status" = 3 ] && [ "$(cat alone)" = "$sum" ] || fail "the copy is not itself: $status"
# Where memlode is not installed, the one that holds the run-time library goes on; where it is, it is recorded as any.
mv /opt/memlode/lib /opt/memlode/gone
status=0
/elsewhere/whole >alone || status=$?
[ "$status" = 3 ] && [ "$(cat alone)" = "$sum" ] || fail "it needs the installation: $status"
mv /opt/memlode/gone /opt/memlode/lib
recorded /elsewhere/whole whole
SCRIPT

# The script binds what the system has, but for what is ours.
cat >"$work/enter" <<'ENTER'
set -e
root=$1
for part in usr bin sbin lib lib64 lib32 libx32 etc; do
  if [ -L "/$part" ]; then
    cp -P "/$part" "$root/$part"
  elif [ -d "/$part" ]; then
    mkdir -p "$root/$part"
    mount --rbind "/$part" "$root/$part"
  fi
done
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/bin/env -i /bin/bash /home/script
ENTER
enter=(unshare --user --map-root-user --mount --pid --fork)
if "${enter[@]}" true 2>/dev/null; then
  "${enter[@]}" sh "$work/enter" "$root"
else
  # Without name spaces the place is not clean, but empty all the same.
  echo "newcomer: this machine allows no root of our own; the installation is used in place" >&2
  sed -e "s|/opt/memlode|$root/opt/memlode|g; s|/elsewhere|$root/elsewhere|g; s|cd /home|cd '$root/home'|" \
    "$root/home/script" >"$work/script"
  env -i /bin/bash "$work/script"
fi
