"""Tables of results in Python: those of `memlode export`, with the figures of `memlode report`, whoever reads them."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import memlode
import pandas as pd
import polars as pl
import pyarrow as pa

# A name that is markup, two threads that write to one line, and memory that one of them walks.
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#line 4 "a<b>.c"
struct node { struct node *next; long key, rest[6]; };
struct counts { long mine, yours, both; };
enum { NODES = 4000 };
static struct counts counts;
static void *work(void *argument) {
  struct node *nodes = calloc(NODES, sizeof *nodes);
  for (int i = 0; i < NODES; i++) {
    nodes[i].next = &nodes[(i + 1237) % NODES];
    nodes[i].key = i;
  }
  struct node *node = nodes;
  for (int i = 0; i < 3 * NODES; i++, node = node->next) {
    if (argument)
      *(volatile long *)&counts.mine += node->key;
    else
      *(volatile long *)&counts.yours += node->key;
  }
  *(volatile long *)&counts.both += 1;
  free(nodes);
  return NULL;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, &counts);
  work(NULL);
  return pthread_join(other, NULL);
}
"""


def record(folder):
    """Compiles and records the program; returns the trace directory."""
    source = pathlib.Path(folder, "work.c")
    source.write_text(PROGRAM)
    program, trace = str(source.with_suffix("")), os.path.join(folder, "trace")
    subprocess.run(["memlode", "cc", "-O1", str(source), "-o", program, "-lpthread"], check=True)
    subprocess.run(["memlode", "record", "-o", trace, "--", program], check=True, stderr=subprocess.DEVNULL)
    return trace


def command(trace, name, *words, keep=False):
    """What a command of memlode's prints about the trace, and what it says."""
    environment = {name: value for name, value in os.environ.items() if name != "MEMLODE_RESULTS" or not keep}
    arguments = ["memlode", name, trace, "-m", "generic", *words]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
    return done.stdout, done.stderr


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = record(cls.folder.name)
        cls.trace = memlode.open(cls.path)
        cls.report = json.loads(command(cls.path, "report", "--json")[0])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def table(self, name):
        return self.trace.table(name, "generic")

    def test_tables_are_those_of_the_command_line(self):
        files = pathlib.Path(self.folder.name, "tables")
        analyses = ["strides", "timeline", "reuse", "shared", "working-set"]
        command(
            self.path, "export", "--to", str(files), "--format", "arrow", "--table", ",".join(["all", *analyses])
        )
        written = {file.stem: pa.ipc.open_file(file).read_all() for file in files.iterdir()}
        self.assertGreater(len(written), 18)
        for name, expected in written.items():
            table = self.table(name)
            self.assertEqual(table.arrow(), expected, name)
            self.assertEqual((table.name, len(table), table.column_names),
                             (name, expected.num_rows, expected.column_names))  # fmt: skip
        self.assertLessEqual(set(written), set(self.trace.tables))

    def test_every_reader_sees_the_figures_of_the_report(self):
        for name, of in [("lines", "lines"), ("members", "fields"), ("objects", "objects"), ("threads", "threads")]:
            expected = [(row["accesses"], row["wait"]["cycles"]) for row in self.report[of]]
            self.assertTrue(expected, name)
            pandas, polars, arrow = self.table(name).pandas(), self.table(name).polars(), pa.table(self.table(name))
            self.assertIsInstance(pandas, pd.DataFrame)
            self.assertIsInstance(polars, pl.DataFrame)
            self.assertEqual(list(zip(pandas["accesses"], pandas["wait_cycles"])), expected)
            self.assertEqual(polars.select("accesses", "wait_cycles").rows(), expected)
            columns = [arrow[column].to_pylist() for column in ("accesses", "wait_cycles")]
            self.assertEqual(list(zip(*columns)), expected)
        sites = self.table("sites").pandas()
        self.assertEqual(sites["accesses"].sum(), self.report["total"]["accesses"])
        # An attribute is the same for this machine.
        self.assertEqual(self.trace.layouts.arrow(), self.table("layouts").arrow())

    def test_a_report_is_kept_and_used(self):
        off = os.environ.pop("MEMLODE_RESULTS", None)
        try:
            first = memlode.open(self.path).table("lines", "generic").arrow()
            said = command(self.path, "report", keep=True)[1]
            self.assertIn("--again computes it anew", said, "the command line takes what Python kept")
            (kept,) = pathlib.Path(self.path, "results").glob("report-*.json")
            text = kept.read_text()
            self.assertEqual(memlode.open(self.path).table("lines", "generic").arrow(), first)
            self.assertEqual(memlode.open(self.path).table("sites", "generic").arrow(), self.table("sites").arrow())
            # Of what is damaged, nothing is used.
            kept.write_text(text.replace('"accesses":', '"accesses":1', 1))
            with self.assertWarnsRegex(UserWarning, "is damaged; the answer is computed anew"):
                again = memlode.open(self.path).table("lines", "generic").arrow()
            self.assertEqual(again, first)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                memlode.open(self.path).table("lines", "generic")
        finally:
            if off is not None:
                os.environ["MEMLODE_RESULTS"] = off

    def test_notebooks_show_names_as_they_are(self):
        html = self.table("lines")._repr_html_()
        self.assertIn("a&lt;b&gt;.c", html)
        self.assertNotIn("a<b>", html)
        self.assertIn(f"<td>{self.report['lines'][0]['accesses']}</td>", html)
        self.assertIn("<code>working_set</code>", self.trace._repr_html_())
        self.assertIn("work</code>", self.trace._repr_html_())

    def test_errors_are_sentences(self):
        with self.assertRaisesRegex(memlode.Error, "there is no table heat; there are total, levels, lines"):
            self.trace.table("heat")
        with self.assertRaisesRegex(memlode.NotMade, "makes without arguments"):
            self.trace.table("shared_source", "generic")
        with self.assertRaisesRegex(memlode.Error, "no machine named `pentium`"):
            self.trace.table("lines", "pentium")
        with self.assertRaisesRegex(AttributeError, "neither an attribute nor a table `heat`"):
            self.trace.heat
        self.assertFalse(hasattr(self.trace, "__len__"))


if __name__ == "__main__":
    unittest.main()
