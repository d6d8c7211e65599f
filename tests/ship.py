"""The tarball and the wheel, each alone in an empty root: enough to compile, record and report."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = r"""
#include <stdlib.h>
struct item { long key, rest[7]; };
int main(void) {
  struct item *items = calloc(5000, sizeof *items);
  long sum = 0;
  for (int i = 0; i < 5000; i++)
    items[i * 7 % 5000].key = i;
  for (int i = 0; i < 5000; i++)
    sum += items[i].key;
  return sum != 12497500;
}
"""
TABLES = """
import json, sys, memlode
trace = memlode.open(sys.argv[1])
rows = trace.table("members", "generic").csv().splitlines()
print(json.dumps({"members": rows[1].split(",")[:2], "accesses": sum(map(len, trace.annotate("hits", "generic")))}))
"""


class Ship(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # Compilers and build systems are strict about blanks; a prefix may have one all the same.
        self.root = pathlib.Path(self.folder.name, "clean root")
        self.root.mkdir()
        (self.root / "program.c").write_text(PROGRAM)

    def run_there(self, *words, status=0):
        """Runs a program with nothing of this environment, and with the clone out of sight where the kernel lets us."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.root), "LANG": "C.UTF-8"}
        words = [*hidden(), *map(str, words)]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=self.root)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def record_and_report(self, prefix):
        """Compiles as a makefile does, records, and reports; returns the report."""
        self.run_there(prefix / "bin" / "memlode-cc", "-O1", "program.c", "-o", "program")
        self.run_there(prefix / "bin" / "memlode", "record", "-o", "trace", "--", "./program")
        report = json.loads(self.run_there(prefix / "bin/memlode", "report", "trace", "-m", "generic", "--json").stdout)
        self.assertEqual(report["lines"][0]["member"], "key")
        self.assertEqual(report["total"]["accesses"], 10000)
        return report

    def test_the_tarball(self):
        (tarball,) = (ROOT / "dist").glob("memlode-*.tar.gz")
        (self.root / "opt").mkdir()
        subprocess.run(["tar", "-xzf", tarball, "-C", self.root / "opt"], check=True)
        (prefix,) = (self.root / "opt").iterdir()
        self.record_and_report(prefix)
        for file in ("share/man/man1/memlode-report.1", "include/memlode.h", "LICENSE"):
            self.assertTrue((prefix / file).is_file(), file)

    def test_the_wheel(self):
        (wheel,) = (ROOT / "dist").glob("memlode-*.whl")
        prefix = self.root / "fresh"
        subprocess.run([sys.executable, "-m", "venv", prefix], check=True, cwd=self.root)
        pip = [prefix / "bin" / "python3", "-m", "pip", "install", "--quiet", "--no-index", wheel]
        subprocess.run([*pip, "--disable-pip-version-check"], check=True, cwd=self.root)
        report = self.record_and_report(prefix)
        # The package, without any other.
        found = json.loads(self.run_there(prefix / "bin" / "python3", "-c", TABLES, "trace").stdout)
        self.assertEqual(found, {"members": ["item", "key"], "accesses": report["total"]["accesses"]})
        # The command finds the Python that it came with, and says what that lacks.
        said = self.run_there(prefix / "bin" / "memlode", "sql", "trace", "SELECT 1", status=1).stderr
        self.assertIn("is not installed: ", said)
        self.assertIn("fresh/bin/python3 -m pip install duckdb", said)


def hidden():
    """What runs a program in a world without the clone; nothing where users may not make one."""
    script = f'mount -t tmpfs none "{ROOT}" && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    works = subprocess.run([*words, "true"], capture_output=True, env={"PATH": os.environ["PATH"]}).returncode == 0
    return words if works else []


if __name__ == "__main__":
    unittest.main()
