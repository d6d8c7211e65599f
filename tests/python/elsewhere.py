"""Traces elsewhere: parts of a trace in an object store find what they find in the same trace here."""

import contextlib
import os
import pathlib
import shutil
import sys
import unittest
from concurrent.futures import ProcessPoolExecutor

import memlode
import pyarrow.fs
from moto.server import ThreadedMotoServer

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "format/generated")]
import memlode_format
import parts as local

# Bytes of an entry of the index.
ENTRY = memlode_format.CHUNK_HEADER.size

# Of each cut one: chunks, stretches, and none.
ANALYSES = ["accesses", "shared:rule=source", "reuse", "strides"]


class Store:
    """An object store on this machine."""

    def __init__(self):
        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_EC2_METADATA_DISABLED="true")
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        self.host, self.port = self.server.get_host_and_port()
        self.files, _ = pyarrow.fs.FileSystem.from_uri(self.address("traces"))
        self.files.create_dir("traces")

    def address(self, name):
        options = f"endpoint_override={self.host}:{self.port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        return f"s3://{name}?{options}"

    def put(self, folder, name):
        """Copies a trace there; returns its address."""
        pyarrow.fs.copy_files(str(folder), f"traces/{name}", destination_filesystem=self.files)
        return self.address(f"traces/{name}")

    def stop(self):
        self.server.stop()


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        local.Parts.setUpClass.__func__(cls)
        cls.store = Store()
        cls.pool = ProcessPoolExecutor(2)
        cls.address = cls.store.put(cls.path, "whole")

    @classmethod
    def tearDownClass(cls):
        cls.store.stop()
        local.Parts.tearDownClass.__func__(cls)

    @contextlib.contextmanager
    def changed(self, name):
        """A copy of the trace to change; what is in it later is put there."""
        folder = pathlib.Path(self.folder.name, name)
        shutil.copytree(self.path, folder, ignore=shutil.ignore_patterns("results"))
        yield folder
        self.store.put(folder, name)

    def refuses(self, name, words):
        with self.assertRaisesRegex(memlode.Error, words) as refused:
            memlode.plan(self.store.address(f"traces/{name}"), "reuse", 2, "generic")
        self.assertNotIn("/tmp", str(refused.exception))

    def test_what_is_found_there_is_what_is_found_here(self):
        here = memlode.run(self.path, ANALYSES, parts=1, machine="generic")
        there = memlode.run(self.address, ANALYSES, parts=7, pool=self.pool, machine="generic")
        self.assertEqual((list(there), there.notes), (list(here), here.notes))
        # The results say where their trace is.
        tasks = memlode.plan(self.address, ANALYSES, 2, "generic")
        self.assertEqual(list(memlode.finish(self.pool.map(local.run, tasks))), list(here))
        here = memlode.run(f"file://{self.path}", ["reuse"], parts=2, pool=self.pool, machine="generic")
        self.assertEqual(list(here), list(memlode.run(self.path, ["reuse"], parts=1, machine="generic")))

    def test_an_analysis_of_ones_own_goes_there(self):
        here = memlode.run(self.path, local.Misses(0), parts=1, machine="generic")
        self.assertGreater(len(here), 3)
        there = memlode.run(self.address, local.Misses(0), parts=3, pool=self.pool, machine="generic")
        self.assertEqual(there, here)

    def test_a_part_reads_its_own_chunks(self):
        with self.changed("damaged") as folder:
            # The last chunk of each thread is somebody else's.
            for file in folder.glob("threads/*.mlt"):
                contents = bytearray(file.read_bytes())
                contents[-1] ^= 1
                file.write_bytes(contents)
        address = self.store.address("traces/damaged")
        whole = memlode.run(str(folder), "accesses", parts=1, machine="generic")
        self.assertTrue(any("checksum" in note for note in whole.notes), whole.notes)
        there = memlode.run(address, "accesses", parts=5, pool=self.pool, machine="generic")
        self.assertEqual(list(there), list(whole))
        self.assertEqual([note.replace(address, str(folder)) for note in there.notes], whole.notes)
        # To its first part that makes no difference.
        first = memlode.plan(address, "accesses", 5, "generic")[0]
        others = memlode.plan(self.address, "accesses", 5, "generic")[1:]
        found = memlode.finish([task.run() for task in (*others, first)])
        here = memlode.run(self.path, "accesses", parts=1, machine="generic")
        self.assertEqual((list(found), found.notes), (list(here), here.notes))

    def test_what_is_missing_is_told(self):
        with self.changed("no-index") as folder:
            (folder / "chunks.mlx").unlink()
        self.refuses("no-index", r"no index of its chunks \(chunks.mlx\)")
        with self.changed("short-index") as folder:
            index = folder / "chunks.mlx"
            index.write_bytes(index.read_bytes()[:-ENTRY])
        self.refuses("short-index", "the index of chunks of s3://traces/short-index.* lacks some")
        with self.changed("bad-index") as folder:
            index = folder / "chunks.mlx"
            index.write_bytes(b"x" * ENTRY + index.read_bytes()[ENTRY:])
        self.refuses("bad-index", "s3://traces/bad-index.*: the index of chunks is damaged")
        with self.changed("odd-manifest") as folder:
            (folder / "manifest.json").write_text('{"complete": true, "threads": [{"thread": 0}]}')
        self.refuses("odd-manifest", "the manifest of s3://traces/odd-manifest.* does not name its threads")
        self.refuses("nothing", "there is no trace at s3://traces/nothing")
        with self.assertRaisesRegex(memlode.Error, "no address of a trace"):
            memlode.plan("gopher://traces/whole", "reuse", 2)
        with self.changed("no-thread") as folder:
            threads = sorted(folder.glob("threads/*.mlt"))
            threads[-1].unlink()
        tasks = memlode.plan(self.store.address("traces/no-thread"), "reuse", 1, "generic")
        with self.assertRaisesRegex(memlode.Error, threads[-1].name):
            tasks[0].run()


if __name__ == "__main__":
    unittest.main()
