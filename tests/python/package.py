"""The Python package: the batches are what the command line writes, whoever reads them."""

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import memlode
import pyarrow as pa

PROGRAM = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct pair { long left, right; };
static _Atomic long turns;
static void *work(void *rounds) {
  for (long round = 0; round < (long)rounds; round++) {
    struct pair *pairs = calloc(1000, sizeof *pairs);
    for (volatile int i = 0; i < 1000; i++) {
      pairs[i * 7 % 1000].left += pairs[i].right;
      atomic_fetch_add(&turns, 1);
    }
    free(pairs);
  }
  return NULL;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, (void *)20);
  work((void *)20);
  return pthread_join(other, NULL);
}
"""

# As in a terminal, where nobody has it ignored, as shells do for what runs in the background.
ENDLESS = """
import memlode, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
while True:
    for batch in memlode.open(sys.argv[1]).annotate("causes", "generic"):
        pass
"""

ALONE = """
import memlode, sys
assert next(memlode.open(sys.argv[1]).annotate()).__arrow_c_array__()
assert "pyarrow" not in sys.modules
"""


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "trace")
        source = pathlib.Path(cls.folder.name, "work.c")
        source.write_text(PROGRAM)
        program = str(source.with_suffix(""))
        subprocess.run(["memlode", "cc", "-O1", str(source), "-o", program, "-lpthread"], check=True)
        subprocess.run(["memlode", "record", "-o", cls.path, "--", program], check=True, stderr=subprocess.DEVNULL)
        cls.trace = memlode.open(cls.path)

    def test_advice_is_that_of_the_command_line_and_is_told_as_it_is_found(self):
        source = pathlib.Path(__file__).parents[1] / "corpus" / "remedies" / "item.c"
        program, path = (os.path.join(self.folder.name, name) for name in ("item", "item.trace"))
        subprocess.run(["memlode", "cc", "-O2", "-g", source, "-o", program], check=True)
        subprocess.run(["memlode", "record", "-o", path, "--", program], check=True, capture_output=True)
        command = ["memlode", "advise", path, "--machine", "generic", "--json", "--again"]
        first = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["worth_it"][0]
        told = []
        trace = memlode.open(path)
        found = trace.advise("generic", found=lambda edit, gain: told.append((edit, gain)))["worth_it"]
        self.assertEqual(found[0]["edits"], first["edits"])
        self.assertAlmostEqual(found[0]["gain"], first["gain"], delta=0.02)
        self.assertIn(("; ".join(found[0]["edits"]), found[0]["gain"]), told)

        def enough(edit, gain):
            raise StopIteration(edit)

        with self.assertRaises(StopIteration):
            trace.advise("generic", found=enough)
        with self.assertRaises(memlode.Error):
            trace.advise("no such machine")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def command(self, *words):
        """The table that the command line writes."""
        out = subprocess.run(
            ["memlode", "replay", self.path, "-m", "generic", *words], check=True, stdout=subprocess.PIPE
        ).stdout
        return pa.ipc.open_stream(io.BytesIO(out)).read_all()

    def test_batches_are_those_of_the_command_line(self):
        for what, words, options in [
            ("hits", (), {}),
            ("causes", (), {}),
            ("causes", ("--pages", "2MiB"), {"page_bytes": 2 << 20}),
            ("hits", ("--thread", "0.1", "--misses-only"), {"thread": "0.1", "misses_only": True}),
            ("hits", ("--level", "L2,memory", "-n", "99"), {"levels": ["L2", "memory"], "limit": 99}),
        ]:
            written = self.command("--annotate", what, *words)
            written.validate(full=True)
            batches = [pa.record_batch(batch) for batch in self.trace.annotate(what, "generic", **options)]
            for batch in batches:
                batch.validate(full=True)
            self.assertGreater(written.num_rows, 50)
            self.assertEqual(pa.Table.from_batches(batches), written)
            # The stream that consumers of whole streams take.
            stream = pa.RecordBatchReader.from_stream(self.trace.annotate(what, "generic", **options))
            self.assertEqual(stream.read_all(), written)

    def test_rows_say_what_happened(self):
        rows = self.trace.annotate("causes", "generic")
        table = pa.table(rows).unify_dictionaries()
        self.assertEqual(table["sequence"].to_pylist(), list(range(table.num_rows)))
        counted = table.group_by(["kind", "variable", "member"]).aggregate([("bytes", "count")]).to_pylist()
        counts = {(row["kind"], row["variable"], row["member"]): row["bytes_count"] for row in counted}
        self.assertEqual(counts["update", "turns", None], 40_000)
        self.assertEqual(counts["load", "pairs", "right"], 40_000)
        self.assertEqual(set(table["thread"].to_pylist()), {0, 1})
        # A level has a cause exactly if it missed, so if a later one answered.
        for level, missed in zip(table["level"].to_pylist(), table["cause_L1d"].to_pylist()):
            self.assertEqual(missed is not None, level != "L1d")
        heap = [row for row in table.select(["object_kind", "object"]).to_pylist() if row["object_kind"] == "heap"]
        self.assertTrue(all(row["object"].startswith("work.c:9 work") for row in heap))

    def test_a_batch_outlives_everything_it_came_from(self):
        first = pa.record_batch(next(memlode.open(self.path).annotate("hits", "generic")))
        column = first["function"]
        expected = column.to_pylist()
        del first
        [bytes(1 << 20) for _ in range(50)]
        self.assertEqual(column.to_pylist(), expected)
        batch = next(self.trace.annotate("hits", "generic"))
        self.assertEqual(pa.record_batch(batch), pa.record_batch(batch), "and can be taken twice")
        self.assertEqual(len(batch), batch.num_rows)
        self.assertEqual(batch.column_names, pa.record_batch(batch).schema.names)

    def test_errors_are_sentences(self):
        for act, words in [
            (lambda: memlode.open("/nowhere"), "no such directory"),
            (lambda: self.trace.annotate("hits", "pentium"), "no machine named `pentium`"),
            (lambda: self.trace.annotate("hits", "generic", thread="7"), "no thread 7; the trace has 0.0, 0.1"),
            (lambda: self.trace.annotate("hits", "generic", levels=["L9"]), "no level L9"),
            (lambda: self.trace.annotate("hits", "generic", page_bytes=4096), "for causes only"),
        ]:
            with self.assertRaisesRegex(memlode.Error, words):
                act()
        with self.assertRaisesRegex(ValueError, "not 'misses'"):
            self.trace.annotate("misses")
        spent = self.trace.annotate("hits", "generic", limit=1)
        self.assertEqual([len(batch) for batch in spent], [1])
        self.assertEqual(list(spent), [])
        with self.assertRaisesRegex(ValueError, "gone through"):
            pa.table(spent)

    def test_nothing_readable_is_an_error(self):
        copy = os.path.join(self.folder.name, "damaged")
        subprocess.run(["cp", "-r", self.path, copy], check=True)
        for file in pathlib.Path(copy, "threads").iterdir():
            # Within the first chunk, however many the collector was given.
            file.write_bytes(file.read_bytes()[:100])
        damaged = memlode.open(copy)
        self.assertTrue(damaged.notes)
        with self.assertRaises(memlode.Error):
            list(damaged.annotate("hits", "generic"))
        self.assertEqual(self.trace.notes, [])

    def test_other_threads_run_meanwhile_and_ctrl_c_works(self):
        turns, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                turns[0] += 1
                time.sleep(0)

        other = threading.Thread(target=count)
        other.start()
        for _ in self.trace.annotate("causes", "generic"):
            pass
        stop.set()
        other.join()
        self.assertGreater(turns[0], 100)
        # Most of the time is spent in the package.
        child = subprocess.Popen([sys.executable, "-c", ENDLESS, self.path], stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", child.communicate(timeout=300)[1])

    def test_no_library_of_arrays_is_needed(self):
        subprocess.run([sys.executable, "-c", ALONE, self.path], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=1)
