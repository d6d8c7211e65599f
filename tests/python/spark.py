"""Traces in a local Spark: the figures of the local engine, to the digit, also where a worker is killed midway."""

import contextlib
import itertools
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import unittest
import unittest.mock

import memlode
import memlode.spark
import pyarrow as pa
import pyarrow.parquet
import pyspark
from memlode import submit
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
    numbers = itertools.count()

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

    def arrow(self, frame):
        """A frame of many rows, by a file where Spark does not hand them over."""
        if hasattr(frame, "toArrow"):
            return frame.toArrow()
        path = os.path.join(self.folder.name, f"rows-{next(self.numbers)}")
        frame.write.parquet(path)
        return pyarrow.parquet.read_table(path)

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
        members = memlode.hot_cold(self.path, machine="generic")
        self.assertEqual(self.rows(self.trace.hot_cold()), members.rows)
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
        members = self.rows(memlode.spark.read(self.spark, address).hot_cold())
        self.assertEqual(members, memlode.hot_cold(self.path, machine="generic").rows)
        chunks = memlode.spark.rows(self.spark, address, cut="chunks", parts=3, columns=["address"])
        self.assertEqual(chunks.count(), sum(row["accesses"] for row in expected))

    def test_rows_are_the_accesses(self):
        columns = ["sequence", "address", "level", "type", "member"]
        for misses_only in (False, True):
            frame = memlode.spark.rows(self.spark, self.path, columns=columns, misses_only=misses_only, parts=3)
            found = self.arrow(frame).sort_by("sequence")
            batches = memlode.open(self.path).annotate("hits", "generic", misses_only=misses_only)
            self.assertEqual(found, pa.table(batches).select(columns).cast(found.schema))
        chunks = memlode.spark.rows(self.spark, self.path, cut="chunks", parts=3)
        self.assertEqual(chunks.count(), sum(row["accesses"] for row in self.table("accesses", "accesses_by_line")))
        with self.assertRaisesRegex(ValueError, "no column `level`"):
            memlode.spark.rows(self.spark, self.path, cut="chunks", columns=["level"])


# Says where executors have the package from, and asks questions. The first attempt at one task would not end.
SCRIPT = """
import json, os, sys, tempfile, time
import memlode.spark
from pyspark.sql import SparkSession

ANALYSES = ["reuse", "accesses"]

def place(number):
    import memlode
    return memlode.__file__

class SlowOnce:
    def __init__(self, task, folder):
        self.task, self.folder = task, folder

    def run(self):
        os.close(tempfile.mkstemp(dir=self.folder)[0])
        if len(os.listdir(self.folder)) == 1:
            time.sleep(600)
        return self.task.run()

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    places = spark.sparkContext.parallelize(range(2), 2).map(place).collect()
    rows = memlode.spark.read(spark, sys.argv[1], parts=2).accesses_per_variable().collect()
    tasks = memlode.plan(sys.argv[1], ANALYSES, 3, "generic")
    attempts = os.path.join(os.path.dirname(sys.argv[1]), "attempts")
    os.mkdir(attempts)
    tasks[1] = SlowOnce(tasks[1], attempts)
    twice = memlode.spark.run_tasks(spark, tasks)
    found = {"places": places, "accesses": sum(row.accesses for row in rows), "arguments": sys.argv[2:]}
    print(json.dumps({**found, "twice": [table.rows for table in twice], "attempts": len(os.listdir(attempts))}))
    sys.stdout.flush()
    # A session that ends would wait for the first attempt.
    os._exit(5)
"""


class Submit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        local.Parts.setUpClass.__func__(cls)

    @classmethod
    def tearDownClass(cls):
        local.Parts.tearDownClass.__func__(cls)

    def submit(self, *words, **variables):
        """Runs `memlode spark submit`, with nothing of this environment that says where Spark is."""
        theirs = ("PYSPARK", "SPARK", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        kept.update(MEMLODE_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", **variables)
        return subprocess.run(["memlode", "spark", "submit", *words], capture_output=True, text=True, env=kept)

    def printed(self, *words, **variables):
        """The words of the command line that would be run."""
        done = self.submit("--print", *words, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return shlex.split(done.stdout)

    @contextlib.contextmanager
    def cluster(self, home):
        """The address of a cluster whose two workers are two hosts: a second attempt is made at another one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"spark://127.0.0.1:{port}"
        deploy = "org.apache.spark.deploy"
        master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port]
        worker = [f"{deploy}.worker.Worker", "--cores", 1, "--memory", "1g", "--work-dir", home / "work"]
        workers = [[*worker, "--host", host, address] for host in ("127.0.0.1", "127.0.0.2")]
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
        with contextlib.ExitStack() as started:
            for words in (master, *workers):
                command = [home / "bin" / "spark-class", *map(str, words), "--webui-port", "0"]
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                process = started.enter_context(subprocess.Popen(command, env=environment, **quiet))
                started.callback(process.kill)
            yield address

    def test_executors_take_the_package_that_is_submitted(self):
        """There, a task that takes long is begun a second time, and counts once."""
        script = pathlib.Path(self.folder.name, "asks.py")
        script.write_text(SCRIPT)
        # What runs for seconds is not worth a compiler's second look.
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        options = ["--driver-memory", "1g", "--driver-java-options", quick, "--executor-memory", "512m"]
        # What takes twice as long as half of the tasks, and a second, is begun again.
        speculation = {"speculation": "true", "speculation.multiplier": 2, "speculation.quantile": 0.5}
        both = {"scheduler.minRegisteredResourcesRatio": 1, "cores.max": 2}
        for name, value in {**speculation, "speculation.minTaskRuntime": "1s", **both}.items():
            options += ["--conf", f"spark.{name}={value}"]
        options += ["--conf", f"spark.executor.extraJavaOptions={quick}", "--conf", "spark.ui.enabled=false"]
        # Spark's own folder gets files of its workers.
        home = pathlib.Path(self.folder.name, "spark")
        home.mkdir()
        for entry in pathlib.Path(pyspark.__file__).parent.iterdir():
            (home / entry.name).symlink_to(entry)
        with self.cluster(home) as address:
            words = ["--master", address, *options, script, self.path, "--print", "--", "x"]
            done = self.submit(*words, SPARK_HOME=str(home), PYSPARK_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 5, done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        for place in found["places"]:
            self.assertEqual(pathlib.Path(place).parts[-3:], ("memlode-package", "memlode", "__init__.py"))
        table = memlode.run(self.path, "accesses", parts=1, machine="generic")["accesses_by_variable"]
        self.assertEqual(found["accesses"], sum(row["accesses"] for row in table.rows))
        self.assertEqual(found["arguments"], ["--print", "--", "x"])
        whole = memlode.run(self.path, ["reuse", "accesses"], parts=1, machine="generic")
        self.assertEqual((found["twice"], found["attempts"]), ([table.rows for table in whole], 2))
        self.assertTrue((home / "work").is_dir(), "SPARK_HOME is where Spark was told that it is")

    def test_options_go_through_and_the_package_is_added_to_them(self):
        name, path = f"memlode-{memlode.__version__}.zip#memlode-package", "spark.executorEnv.PYTHONPATH"
        mine = ["--master", "yarn", "--supervise", "--archives", "e.tar.gz#e", "--conf", f"{path}=/lib", "--name=a b"]
        command = self.printed(*mine, "s.py", "--archives", "-x")
        self.assertEqual(pathlib.Path(command[0]), pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit")
        self.assertEqual(command[1 : 1 + len(mine)], mine)
        option, archives, conf, value, *script = command[1 + len(mine) :]
        self.assertEqual((option, conf, script), ("--archives", "--conf", ["s.py", "--archives", "-x"]))
        first, ours = archives.split(",")
        self.assertEqual((first, ours.rpartition("/")[2]), ("e.tar.gz#e", name))
        self.assertEqual(value, f"{path}=memlode-package:/lib")
        self.assertEqual(len(self.printed("s.py")), 6)

    def test_workers_of_this_machine_are_this_python(self):
        there = pathlib.Path("/opt/spark/bin/spark-submit")
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("PYSPARK_PYTHON", None)
            for words, is_here in [
                (["s.py"], True),
                (["--master", "local[2]", "s.py", "--master", "yarn"], True),
                (["--master=yarn", "s.py"], False),
                (["--conf", "spark.master=k8s://x", "s.py"], False),
                (["--conf", "spark.master=yarn", "--master", "local", "s.py"], True),
            ]:
                found = submit.environment(words, there)
                self.assertEqual(found.get("PYSPARK_PYTHON"), sys.executable if is_here else None, words)
                self.assertEqual(found["SPARK_HOME"], "/opt/spark")

    def test_what_is_missing_is_said(self):
        for words, variables, why in [
            (["--master", "local"], {}, "there is no script to submit"),
            (["--master"], {}, "--master of spark-submit has no value"),
            (["s.py"], {"SPARK_HOME": "/nowhere"}, "SPARK_HOME is /nowhere, where there is no bin/spark-submit"),
        ]:
            done = self.submit("--print", *words, **variables)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"^memlode: error: .*{why}")
        self.assertEqual(self.submit().returncode, 2)


if __name__ == "__main__":
    unittest.main()
