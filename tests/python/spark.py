"""Traces in a local Spark: the figures of the local engine, to the digit, also where a worker is killed midway."""

import os
import pathlib
import signal
import sys
import unittest

import memlode
import memlode.spark
import pyarrow as pa
from pyspark.sql import SparkSession

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import parts as local
from elsewhere import Store


class KilledOnce:
    """A task whose first attempt is killed in the middle of its work."""

    def __init__(self, task, mark):
        self.task, self.mark = task, mark

    def run(self):
        if not os.path.exists(self.mark):
            pathlib.Path(self.mark).touch()
            next(iter(self.task.annotate()))
            os.kill(os.getpid(), signal.SIGKILL)
        return self.task.run()


class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        local.Parts.setUpClass.__func__(cls)
        here = str(pathlib.Path(__file__).parent)
        # Before there are executors, which know the same keys.
        cls.store = Store()
        os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=here, SPARK_LOCAL_IP="127.0.0.1")
        # Two cores, and three attempts at a task.
        builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        cls.spark = builder.config("spark.driver.memory", "1g").getOrCreate()
        cls.spark.sparkContext.setLogLevel("OFF")
        cls.trace = memlode.spark.read(cls.spark, cls.path, parts=5)

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()
        cls.store.stop()
        local.Parts.tearDownClass.__func__(cls)

    def rows(self, frame):
        return [row.asDict(recursive=True) for row in frame.collect()]

    def table(self, analysis, name):
        return memlode.run(self.path, analysis, parts=1, machine="generic")[name].rows

    def test_frames_are_the_local_engines_tables(self):
        for frame, analysis, name in [
            (self.trace.accesses_per_variable(), "accesses", "accesses_by_variable"),
            (self.trace.offenders(), "accesses:misses=yes", "accesses_by_line"),
            (self.trace.shared(), "shared:rule=source", "shared_source"),
            (self.trace.reuse(), "reuse", "reuse_by_data"),
            (self.trace.kernels()[0], "accesses", "accesses_by_variable"),
            (self.trace.kernels()[1], "shared:rule=source", "shared_source"),
        ]:
            expected = self.table(analysis, name)
            self.assertGreater(len(expected), 0, name)
            # As a frame has them: each row has every name that any row has.
            self.assertEqual(self.rows(frame), pa.Table.from_pylist(expected).to_pylist(), name)
        lines = self.rows(self.trace.sources_of("node.key"))
        self.assertGreater(len(lines), 1)
        self.assertEqual({(row["data"]["type"], row["data"]["member"]) for row in lines}, {("node", "key")})

    def test_an_analysis_of_ones_own_runs_there(self):
        analysis = local.Windows(50_000)
        self.assertEqual(self.trace.run(analysis), memlode.run(self.path, analysis, parts=1, machine="generic"))

    def test_a_worker_that_is_killed_changes_nothing(self):
        tasks = memlode.plan(self.path, ["reuse", "accesses"], 4, "generic")
        mark = os.path.join(self.folder.name, "killed")
        whole = memlode.finish([task.run() for task in tasks])
        tasks[2] = KilledOnce(tasks[2], mark)
        self.assertEqual(memlode.spark.run_tasks(self.spark, tasks), whole)
        self.assertTrue(os.path.exists(mark))

    def test_a_trace_may_be_elsewhere(self):
        address = self.store.put(self.path, "whole")
        frame = memlode.spark.read(self.spark, address, parts=3).accesses_per_variable()
        expected = self.table("accesses", "accesses_by_variable")
        self.assertEqual(self.rows(frame), pa.Table.from_pylist(expected).to_pylist())
        chunks = memlode.spark.rows(self.spark, address, cut="chunks", parts=3, columns=["address"])
        self.assertEqual(chunks.count(), sum(row["accesses"] for row in expected))

    def test_rows_are_the_accesses(self):
        columns = ["sequence", "address", "level", "type", "member"]
        for misses_only in (False, True):
            frame = memlode.spark.rows(self.spark, self.path, columns=columns, misses_only=misses_only, parts=3)
            found = frame.toArrow().sort_by("sequence")
            batches = memlode.open(self.path).annotate("hits", "generic", misses_only=misses_only)
            self.assertEqual(found, pa.table(batches).select(columns).cast(found.schema))
        chunks = memlode.spark.rows(self.spark, self.path, cut="chunks", parts=3)
        self.assertEqual(chunks.count(), sum(row["accesses"] for row in self.table("accesses", "accesses_by_line")))
        with self.assertRaisesRegex(ValueError, "no column `level`"):
            memlode.spark.rows(self.spark, self.path, cut="chunks", columns=["level"])


if __name__ == "__main__":
    unittest.main()
