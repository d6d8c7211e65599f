"""Analyses in parts: what many processes find in parts of a trace is what `memlode replay` finds in one pass."""

import json
import os
import pathlib
import pickle
import resource
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import memlode
import pyarrow as pa

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
struct node { struct node *next; long key, hits; };
enum { NODES = 3000, ROUNDS = 60 };
static long sums[2];
static _Atomic long turns;
static void *work(void *which) {
  long me = (long)which;
  for (int round = 0; round < ROUNDS; round++) {
    struct node *nodes = calloc(NODES, sizeof *nodes);
    long *keys = malloc(NODES * sizeof *keys);
    for (int i = 0; i < NODES; i++) {
      nodes[i].next = &nodes[i * 7 % NODES];
      keys[i] = nodes[i].key = i;
    }
    for (struct node *node = nodes; node->hits++ < 3; node = node->next)
      sums[me] += node->key + keys[node->key];
    for (int i = 0; i < NODES; i++) {
      sums[me] += keys[i * 13 % NODES];
      if (i % 64 == 0)
        turns++;
    }
    free(keys);
    free(nodes);
  }
  return NULL;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, (void *)1);
  work((void *)0);
  return pthread_join(other, NULL);
}
"""

ANALYSES = [
    "accesses",
    "accesses:misses=yes",
    "alias:least=1",
    "cells",
    "contexts",
    "heap",
    "locks",
    "ranges",
    "ranges:contexts=0,blocks=yes",
    "reloads:least=1,share=0",
    "reuse",
    "shared:least=2",
    "shared:rule=source",
    "strides",
    "temporaries:least=1,life=1000000",
    "timeline:every=50000",
    "working-set:every=100000",
]


class Windows:
    """Running totals of accesses by variable, at the end of each window."""

    cut = "stretches"

    def __init__(self, window):
        self.window, self.counts = window, Counter()

    def observe(self, batch):
        batch = pa.record_batch(batch)
        windows = (number // self.window for number in batch["sequence"].to_pylist())
        self.counts.update(zip(windows, batch["variable"].to_pylist(), batch["member"].to_pylist()))

    def merge(self, later):
        self.counts.update(later.counts)

    def finish(self):
        return self.counts


class Sites(Windows):
    """The same of chunks, which have no order."""

    cut = "chunks"

    def observe(self, batch):
        batch = pa.record_batch(batch)
        assert not {"sequence", "level", "object"} & set(batch.schema.names)
        self.counts.update(zip(batch["variable"].to_pylist(), batch["member"].to_pylist()))


class Misses(Windows):
    """Accesses that missed, by level and object: of a part, both depend on what came before."""

    misses_only = True

    def observe(self, batch):
        batch = pa.record_batch(batch)
        self.counts.update(zip(batch["level"].to_pylist(), batch["object"].to_pylist()))


def run(task):
    return task.run()


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "trace")
        source = pathlib.Path(cls.folder.name, "work.c")
        source.write_text(PROGRAM)
        program = str(source.with_suffix(""))
        subprocess.run(["memlode", "cc", "-O1", str(source), "-o", program, "-lpthread"], check=True)
        subprocess.run(["memlode", "record", "-o", cls.path, "--", program], check=True, stderr=subprocess.DEVNULL)
        cls.pool = ProcessPoolExecutor(2)

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()
        cls.folder.cleanup()

    def test_parts_find_what_one_pass_finds(self):
        words = [word for analysis in ANALYSES for word in ("--analyse", analysis)]
        out = subprocess.run(
            ["memlode", "replay", self.path, "-m", "generic", "--json", *words], check=True, stdout=subprocess.PIPE
        ).stdout
        whole = [(table["table"], table["rows"]) for table in json.loads(out)["tables"]]
        self.assertGreaterEqual(len(whole), len(ANALYSES))
        empty = [name for name, rows in whole if not rows]
        self.assertLessEqual(set(empty), {"reloads", "locks", "locks_lines"})
        for parts in (1, 2, 7, 32):
            tasks = memlode.plan(self.path, ANALYSES, parts, "generic")
            cuts = {analysis: task.cut for task in tasks for analysis in task.analyses}
            if parts > 1:
                self.assertEqual(len(tasks), 4 * parts + 1)
                self.assertEqual(cuts["accesses"], "chunks")
                self.assertEqual(cuts["shared:rule=source"], "chunks")
                self.assertEqual(cuts["reuse"], "stretches")
                self.assertEqual(cuts["ranges:contexts=0,blocks=yes"], "stretches")
                self.assertEqual(cuts["shared:least=2"], "lines")
                self.assertEqual(cuts["alias:least=1"], "threads")
                self.assertEqual(cuts["strides"], "whole")
            # In whatever order they come back.
            results = list(self.pool.map(run, tasks))[::-1]
            found = memlode.finish(results)
            self.assertEqual([(table.name, table.rows) for table in found], whole, f"{parts} parts")

    def test_what_came_before_is_read_from_tables(self):
        path = os.path.join(self.folder.name, "with-tables")
        shutil.copytree(self.path, path, ignore=shutil.ignore_patterns("results"))
        tables = pathlib.Path(path, "results")
        contents = lambda: {file.name: file.read_bytes() for file in tables.glob("past-64-*.mlk")}  # noqa: E731
        asked = [analysis for analysis in ANALYSES if analysis.startswith(("reuse", "working-set", "ranges:"))]
        *before, last = memlode.plan(path, asked, 7, "generic")
        whole = memlode.run(path, asked, parts=1, machine="generic")
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("MEMLODE_RESULTS", None)
            # Who reads to the end keeps all of them.
            results = [last.run()]
            kept = contents()
            self.assertGreater(len(kept), 5)  # how many depends on how the threads took turns
            self.assertLess(sum(map(len, kept.values())), 200_000)
            results += [task.run() for task in before]
            self.assertEqual(memlode.finish(results), whole)
            self.assertEqual(contents(), kept)
            for parts in (2, 32):
                tasks = memlode.plan(path, asked, parts, "generic")
                self.assertEqual(memlode.finish([task.run() for task in tasks]), whole, f"{parts} parts")
            # The first accesses are not read again: nobody notices that they are damaged.
            thread = next(pathlib.Path(path, "threads").iterdir())
            times, intact = os.stat(thread), thread.read_bytes()
            thread.write_bytes(intact[:200] + bytes([intact[200] ^ 1]) + intact[201:])
            os.utime(thread, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.assertEqual(memlode.finish([last.run(), *results[1:]]), whole)
            alone = memlode.finish([last.run(tables=False), *results[1:]])
            self.assertEqual(len(alone.notes), len(memlode.finish(results).notes) + 1)
            thread.write_bytes(intact)
            os.utime(thread, ns=(times.st_atime_ns, times.st_mtime_ns))
            # One that is damaged, cut off, or of another place is made again.
            for number, damage in enumerate(
                [lambda file: file[:-1], lambda file: file[:90] + bytes([file[90] ^ 1]) + file[91:], lambda _: b""]
            ):
                name = sorted(kept)[2 * number]
                tables.joinpath(name).write_bytes(damage(kept[name]))
                self.assertEqual(memlode.finish([last.run(), *results[1:]]), whole)
                self.assertEqual(contents(), kept)
            names = sorted(kept)
            tables.joinpath(names[1]).write_bytes(kept[names[0]])
            self.assertEqual(memlode.finish([last.run(), *results[1:]]), whole)
            self.assertEqual(contents(), kept)
            # Of a trace that was changed they are not read, and where none can be kept none is needed.
            os.utime(thread)
            last.run()
            self.assertEqual([name for name, table in contents().items() if table == kept[name]], [])
            shutil.rmtree(tables)
            tables.touch()
            self.assertEqual(memlode.finish([last.run(), *results[1:]]), whole)

    def test_an_analysis_of_ones_own_sees_every_access_once(self):
        for analysis in (Windows(10_000), Sites(0), Misses(0)):
            whole = memlode.run(self.path, analysis, parts=1, machine="generic")
            self.assertGreater(len(whole), 3)
            for parts in (2, 7):
                found = memlode.run(self.path, analysis, parts=parts, pool=self.pool, machine="generic")
                self.assertEqual(found, whole, f"{type(analysis).__name__} in {parts} parts")
        self.assertEqual(sum(memlode.run(self.path, Windows(1), parts=3, pool=self.pool).values()), self.accesses())

    def test_members_are_hot_and_cold_as_advice_has_them(self):
        rows = memlode.hot_cold(self.path, machine="generic").rows
        out = subprocess.run(
            ["memlode", "advise", "--json", "-m", "generic", self.path],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
        advised = [
            (chart["type"], chart["is_split"], member["member"], member["accesses"], member["is_cold"])
            for chart in json.loads(out)["structures"]
            for member in chart["members"]
        ]
        keys = ("type", "is_split", "member", "accesses", "is_cold")
        self.assertEqual([tuple(row[key] for key in keys) for row in rows], advised)
        self.assertEqual([row["member"] for row in rows if row["type"] == "node"], ["next", "key", "hits"])
        self.assertAlmostEqual(sum(row["access_share"] for row in rows if row["type"] == "node"), 1)
        self.assertAlmostEqual(sum(row["miss_share"] for row in rows if row["type"] == "node"), 1)

    def accesses(self):
        table = memlode.run(self.path, "accesses", parts=1)["accesses_by_variable"]
        return sum(row["accesses"] for row in table.rows)

    def test_tasks_are_small_and_results_are_checked(self):
        tasks = memlode.plan(self.path, ["reuse", "accesses"], 3, "generic")
        self.assertLess(max(len(pickle.dumps(task)) for task in tasks), 1000)
        results = [task.run() for task in tasks]
        memlode.finish(results + results[:2])
        # The kernel counts in pages of its own, so not to the byte.
        counted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.assertAlmostEqual(memlode.finish(results).peak_bytes / counted, 1, delta=0.1)
        with self.assertRaisesRegex(memlode.Error, "part 1 of 3 by chunks is missing"):
            memlode.finish([result for result, task in zip(results, tasks) if (task.cut, task.part) != ("chunks", 1)])
        with self.assertRaisesRegex(memlode.Error, "nothing answers question 0"):
            memlode.finish([result for result, task in zip(results, tasks) if task.cut == "chunks"])
        with self.assertRaisesRegex(memlode.Error, "damaged"):
            memlode.finish([results[0][:-1], *results[1:]])
        with self.assertRaisesRegex(memlode.Error, "no result of a part"):
            memlode.finish([b"", *results[1:]])
        other = memlode.plan(self.path, ["reuse", "accesses"], 3, "zen3" if "zen3" in memlode.machines() else "host")
        with self.assertRaisesRegex(memlode.Error, "another machine"):
            memlode.finish([*results[:-1], other[-1].run()])

    def test_errors_are_sentences(self):
        for analyses, words in [
            (["heat"], "no analysis `heat` of every access; there are accesses"),
            (["offenders"], "no analysis `offenders` of every access"),
            (["accesses:misses=perhaps"], "`perhaps` is no value for misses"),
        ]:
            with self.assertRaisesRegex(memlode.Error, words):
                memlode.plan(self.path, analyses, 2)
        with self.assertRaisesRegex(memlode.Error, "no such directory"):
            memlode.plan("/nowhere", "reuse", 2)
        with self.assertRaisesRegex(KeyError, "there are accesses_by_variable"):
            memlode.run(self.path, "accesses", parts=1)["reuse"]


if __name__ == "__main__":
    unittest.main()
