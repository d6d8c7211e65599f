"""`memlode sql`, and Parquet: the page's questions, answered again from lines of JSON and from the report."""

import collections
import csv
import io
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

import memlode
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from memlode import parquet

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from results import command, record

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "sql.md"
QUESTION = re.compile(r"^### (.*?)\n\n```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)
STORES = ("store", "atomic store", "update")

# The package and its libraries are hidden from this Python.
WITHOUT = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
from memlode.command import main
sys.exit(main(sys.argv[2:]))
"""


def counted(rows, key, value=lambda row: 1):
    """Sums by key, of rows that have one."""
    sums = collections.Counter()
    for row in rows:
        of = key(row)
        if of is not None:
            sums[of] += value(row)
    return sums


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.empty = cls.root / "empty"
        cls.empty.mkdir()
        cls.path = record(cls.folder.name)
        cls.report = json.loads(command(cls.path, "report", "--json")[0])
        lines = command(cls.path, "replay", "--rows", "hits", "--format", "ndjson")[0]
        cls.rows = [json.loads(line) for line in lines.splitlines()]
        cls.rows_file = str(cls.root / "it's.parquet")
        cls.said = command(cls.path, "export", "--to", cls.rows_file)[1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def sql(self, *words, text=None):
        """What a command prints; its queries may be a text."""
        arguments = ["memlode", "sql", self.path, "-m", "generic", *words]
        return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True, input=text).stdout

    def refuse(self, *words, status=1, environment=None):
        """What a command that fails says: no rows, and no traceback."""
        done = subprocess.run(["memlode", *words], capture_output=True, text=True, env=environment, cwd=self.empty)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    # Each question of the page, answered otherwise.

    def of_two_threads(self):
        threads, writes = collections.defaultdict(set), collections.Counter()
        for row in self.rows:
            if "member" in row and row["kind"] in STORES:
                place = (row["type"], row["member"], row["address"])
                threads[place].add(row["thread"])
                writes[place] += 1
        both = [place for place in threads if len(threads[place]) > 1]
        self.assertEqual({place[:2] for place in both}, {("counts", "both")})
        return [{"type": place[0], "member": place[1], "threads": 2, "writes": writes[place]} for place in both]

    def of_second_half(self):
        late = [row for row in self.rows if row["level"] != "L1d" and row["sequence"] > len(self.rows) / 2]
        sums = counted(late, lambda row: (row["object_kind"], row["object"]))
        return [dict(object_kind=of[0], object=of[1], misses=misses) for of, misses in sums.most_common()]

    def of_waiting(self):
        names = ("type", "member", "variable", "file", "line", "accesses")
        rows = self.report["lines"][:5]
        return [{**{name: row[name] for name in names}, "wait_share": round(row["wait_share"], 3)} for row in rows]

    def of_one_line(self):
        lines = collections.defaultdict(list)
        for row in self.rows:
            if row["object_kind"] == "global":
                lines[int(row["address"], 16) // 64].append(row)
        (line,) = [rows for rows in lines.values() if len({row["thread"] for row in rows}) > 1]
        data = sorted({f"{row['type']}.{row['member']}" for row in line})
        self.assertEqual(data, ["counts.both", "counts.mine", "counts.yours"])
        return [{"data": data, "threads": 2, "accesses": len(line)}]

    def of_untouched(self):
        touched = {(row["type"], row["member"]) for row in self.report["fields"]}
        self.assertNotIn(("node", "rest"), touched)
        return [{"type": "node", "member": "rest", "bytes": 48}]

    def of_functions(self):
        lines = collections.defaultdict(set)
        for row in self.rows:
            lines[row["function"]].add(int(row["address"], 16) // 64)
        sizes = [{"function": name, "bytes": 64 * len(touched)} for name, touched in lines.items()]
        return sorted(sizes, key=lambda row: -row["bytes"])

    def of_time(self):
        sums = counted(self.rows, lambda row: (row["sequence"] // 50_000, row["level"]))
        for level, missed in self.report["total"]["misses"].items():
            later = [name for name in ("L1d", "L2", "L3", "memory") if name > level or name == "memory"]
            self.assertEqual(sum(count for (_, name), count in sums.items() if name in later), missed)
        return [dict(part=part, level=level, accesses=count) for (part, level), count in sorted(sums.items())]

    def of_steps(self):
        before, steps = {}, collections.Counter()
        for row in self.rows:
            site, address = (row["thread"], row["site"]), int(row["address"], 16)
            if site in before:
                steps[row["file"], row["line"], row.get("member"), address - before[site]] += 1
            before[site] = address
        most = {}
        for (*place, step), times in steps.items():
            most[tuple(place)] = min(most.get(tuple(place), (0, 0)), (-times, step))
        found = [dict(file=of[0], line=of[1], member=of[2], step=step, times=-times)
                 for of, (times, step) in most.items()]  # fmt: skip
        return sorted(found, key=lambda row: -row["times"])

    def of_types(self):
        key = lambda row: (row["type"], row["function"]) if "type" in row else None
        misses = counted(self.rows, key, lambda row: row["level"] != "L1d")
        cycles = counted(self.rows, key, lambda row: row["cycles"])
        for name in ("node", "counts"):
            (of_report,) = [row for row in self.report["types"] if row["type"] == name]
            self.assertEqual(sum(misses[of] for of in misses if of[0] == name), of_report["misses"]["L1d"])
        return [dict(type=of[0], function=of[1], misses=int(misses[of]), cycles=sums)
                for of, sums in cycles.most_common()]  # fmt: skip

    def of_findings(self):
        found = [(rank, row) for rank, row in enumerate(self.report["findings"], 1) if row["type"] == "node"]
        self.assertTrue(found)
        objects = [row for row in self.report["objects"] if row["element"] == "node"]
        self.assertEqual(len(objects), 2, "the two threads reach the allocation by two paths")
        return [
            (rank, "node", row["member"], round(row["wait_share"], 3), of["count"], of["bytes"])
            for rank, row in found
            for of in objects
        ]

    def test_the_questions_of_the_page(self):
        questions = dict(QUESTION.findall(PAGE.read_text()))
        answers = [self.of_two_threads, self.of_second_half, self.of_waiting, self.of_one_line, self.of_untouched,
                   self.of_functions, self.of_time, self.of_steps, self.of_types, self.of_findings]  # fmt: skip
        self.assertEqual(len(questions), len(answers))
        trace = memlode.open(self.path)
        # All at once, of what was exported.
        text = self.sql("--from", self.rows_file, "--format", "json", text=";\n".join(questions.values()))
        for (heading, query), answer in zip(questions.items(), answers):
            expected = answer()
            self.assertTrue(expected, heading)
            replayed = trace.sql(query, "generic").pl().to_dicts()
            exported, end = json.JSONDecoder().raw_decode(text)
            text = text[end:].lstrip()
            for found in (replayed, exported):
                if answer == self.of_findings:
                    self.assertTrue(all(row["object"].startswith("a<b>.c:") for row in found))
                    names = ("rank", "type", "member", "wait_share", "objects", "object_bytes")
                    found = [tuple(row[name] for name in names) for row in found]
                # Rows that are equal in what they are sorted by may come in any order.
                self.assertEqual(sorted(found, key=repr), sorted(expected, key=repr), heading)
        self.assertEqual(text, "")

    def test_forms_of_an_answer(self):
        query = "SELECT member, wait_cycles, ['x', 'y'] AS allocated FROM members ORDER BY wait_cycles"
        expected = json.loads(self.sql(query, "--format", "json"))
        self.assertGreater(len(expected), 2)
        rows = list(csv.DictReader(io.StringIO(self.sql(query, "--format", "csv"))))
        self.assertEqual([(row["member"], float(row["wait_cycles"]), row["allocated"]) for row in rows],
                         [(row["member"], row["wait_cycles"], "x | y") for row in expected])  # fmt: skip
        arguments = ["memlode", "sql", self.path, query, "-m", "generic", "--format", "arrow"]
        stream = subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(pa.ipc.open_stream(stream).read_all().to_pylist(), expected)
        table = self.sql(query)
        self.assertTrue(all(row["member"] in table for row in expected))
        # Several statements, from standard input; the reader may leave early.
        text = "CREATE TABLE mine AS SELECT 2 AS n;\nSELECT n + 1 AS m FROM mine; SELECT NULL AS none WHERE false;"
        self.assertEqual(self.sql("--format", "json", text=text), '[\n{"m": 3}\n]\n[]\n')
        many = "memlode sql --from \"$0\" 'FROM range(1000000)' --format csv | head -n 2; echo ${PIPESTATUS[0]}"
        left = subprocess.run(["bash", "-c", many, self.rows_file], capture_output=True, text=True)
        self.assertEqual((left.stdout, left.stderr), ("range\n0\n0\n", ""))

    def test_a_shell(self):
        """On a terminal: a query in two lines, a mistake, and what commands a terminal."""
        leader, follower = pty.openpty()
        shell = subprocess.Popen(
            ["memlode", "sql", self.path, "-m", "generic"], stdin=follower, stdout=follower, stderr=follower,
            env=dict(os.environ, TERM="dumb"),
        )  # fmt: skip
        os.close(follower)
        os.write(leader, b".tables\nSELECT accesses\nFROM total;\nSELECT nothing;\nSELECT chr(27) || '[31m';\n.quit\n")
        said = b""
        try:
            while chunk := os.read(leader, 1 << 16):
                said += chunk
        except OSError:
            pass
        os.close(leader)
        self.assertEqual(shell.wait(timeout=60), 0)
        said = said.decode()
        for words in ("findings, sharing", str(self.report["total"]["accesses"]), "memlode: error: Binder Error"):
            self.assertIn(words, said)
        self.assertNotIn("\x1b[31m", said)

    def test_parquet_has_every_access(self):
        threads = sorted({row["thread"] for row in self.rows})
        files = sorted(pathlib.Path(self.rows_file).iterdir())
        self.assertEqual([file.name for file in files], [f"thread-0.{thread}.parquet" for thread in threads])
        self.assertRegex(self.said, rf"{len(self.rows):,} accesses in .* a second of processor time")
        expected = pa.table(memlode.open(self.path).annotate("hits", "generic")).unify_dictionaries()
        for table in (
            pq.read_table(self.rows_file).sort_by("sequence"),
            pl.read_parquet(self.rows_file).sort("sequence").to_arrow(),
            pa.Table.from_pandas(pd.read_parquet(self.rows_file).sort_values("sequence"), preserve_index=False),
        ):
            for column in ("sequence", "address", "bytes", "cycles", "site"):
                self.assertEqual(table[column].to_pylist(), expected[column].to_pylist())
            for column in ("level", "kind", "member", "object"):
                self.assertEqual(table[column].to_pylist(), expected[column].to_pylist())
        for file in files:
            columns = pq.ParquetFile(file).metadata.row_group(0)
            self.assertEqual({columns.column(at).compression for at in range(columns.num_columns)}, {"ZSTD"})

    def test_groups_and_files(self):
        """Groups end at their size, wherever batches end; one thread is one file, which replaces another one."""
        was, parquet.GROUP, parquet.WAITING = (parquet.GROUP, parquet.WAITING), 7_000, 12_000
        try:
            file = self.root / "one.parquet"
            file.write_text("what was there")
            trace = memlode.open(self.path)
            written = parquet.write_accesses(trace, file, "generic", thread="0.1")
            self.assertEqual((written.files, written.bytes), ([file], file.stat().st_size))
            groups = pq.ParquetFile(file).metadata
            self.assertEqual(groups.num_rows, written.rows)
            sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
            self.assertEqual(sizes[:-1], [7_000] * (len(sizes) - 1))
            expected = pa.table(trace.annotate("hits", "generic", thread="0.1")).unify_dictionaries()
            self.assertTrue(pq.read_table(file).unify_dictionaries().equals(expected))
            both = parquet.write_accesses(trace, self.root / "both.parquet", "generic")
            self.assertEqual(pl.read_parquet(both.path).height, len(self.rows))
        finally:
            parquet.GROUP, parquet.WAITING = was
        self.assertEqual([path for path in self.root.iterdir() if path.name.startswith(".")], [])

    def test_tables_as_parquet(self):
        for table in ("lines", "all,shared"):
            to = self.root / f"{table}.parquet"
            command(self.path, "export", "--to", str(to), "--table", table)
            files = [to] if to.is_file() else sorted(to.iterdir())
            self.assertEqual(len(files), 1 if table == "lines" else 15)
            for file in files:
                expected = memlode.open(self.path).table(file.stem, "generic").arrow()
                self.assertEqual(pq.read_table(file).to_pylist(), expected.to_pylist(), file.stem)

    def test_errors_are_sentences(self):
        for words, says in [
            (["sql", self.path, "SELECT * FROM lins"], "There are the tables accesses, total, levels, lines"),
            (["sql", self.path, "SELECT * FRM lines"], "Parser Error"),
            (["sql", self.path, "SELECT 1", "-m", "pentium"], "no machine named `pentium`"),
            (["sql", "/nowhere", "SELECT 1"], "/nowhere is not a memlode trace"),
            (["sql", "--from", "/nowhere", "SELECT * FROM accesses"], "is not what `memlode export` writes"),
            (["sql", self.path, b"SELECT \xff AS x"], "is not UTF-8"),
            (["sql", "SELECT 1"], "there is no trace in this directory"),
            (["export", self.path, "--to", self.rows_file], "is a folder already"),
            (["export", self.path, "--to", "/nowhere/x.parquet"], "/nowhere/x.parquet cannot be written"),
            (["export", self.path, "--to", "-", "--format", "parquet"], "name it with --to"),
        ]:
            self.assertIn(says, self.refuse(*words))

    def test_what_is_missing_is_told_with_the_command(self):
        bare = self.root / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
        environment = dict(os.environ, MEMLODE_PYTHON=str(bare / "bin" / "python3"))
        said = self.refuse("sql", self.path, "SELECT 1", environment=environment)
        self.assertRegex(said, rf"which {bare}/bin/python3 does not have: .* -m pip install duckdb pyarrow")
        environment["MEMLODE_PYTHON"] = "/nowhere/python3"
        said = self.refuse("sql", self.path, "SELECT 1", environment=environment)
        self.assertIn("/nowhere/python3 cannot be run", said)
        for module, words in [
            ("duckdb", ["sql", f"--trace={self.path}", "--query=SELECT 1"]),
            ("pyarrow", ["export", f"--trace={self.path}", f"--to={self.root}/x.parquet"]),
        ]:
            done = subprocess.run([sys.executable, "-c", WITHOUT, module, *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            told = rf"^memlode: error: {module}, .* not installed: \S+ -m pip install .*{module}"
            self.assertRegex(done.stderr, told)
            self.assertEqual(done.stderr.count("\n"), 1)
        # What lies in the working directory is not taken for the package.
        (self.root / "memlode.py").write_text("raise SystemExit('not ours')")
        words = ["memlode", "sql", self.path, "SELECT 1 AS n", "--format", "csv"]
        found = subprocess.run(words, cwd=self.root, capture_output=True, text=True)
        self.assertEqual(found.stdout, "n\n1\n", found.stderr)


if __name__ == "__main__":
    unittest.main()
