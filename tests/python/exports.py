"""`memlode export`: each format is opened by a program that it is for, and says what the report says."""

import csv
import gzip
import importlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter, defaultdict

import jsonschema
import pyarrow as pa
from grpc_tools import protoc

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "export.md"

# A file, a function and a type whose names hold what formats separate their parts with.
HEADER = "odd;na 'me,\t(1).h"
PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include "odd;na 'me,	(1).h"
struct node { struct node *next; long key, rest[14]; };
enum { NODES = 20000 };
static long counter[16];
__attribute__((noinline)) long deep(struct node *node, int left) {
  return left == 0 ? 0 : node->key + deep(node->next, left - 1);
}
__attribute__((noinline)) long quoted(const long *values) __asm__("quo\"ted;\tname\xff");
long quoted(const long *values) { return values[3] + values[5]; }
static void *work(void *argument) {
  struct node *nodes = calloc(NODES, sizeof *nodes);
  for (int i = 0; i < NODES; i++) {
    nodes[i].next = &nodes[(i * 7919L + 1) % NODES];
    nodes[i].key = i;
  }
  long sum = (long)argument;
  for (struct node *node = nodes; sum < 300000000; node = node->next)
    sum += key_of(&node->key);
  sum += deep(nodes, 300) + quoted(counter);
  counter[(long)argument]++;
  free(nodes);
  return (void *)(long)(sum == 1);
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, (void *)1);
  pthread_join(other, NULL);
  return work((void *)2) != NULL;
}
"""
INLINED = """static inline long key_of(const long *key) {
  return *key + 20000;
}
"""
MACHINE = """
name = "odd"
description = "a level whose name is no word"
sources = ["made up"]
cores = 2
line_bytes = 64
memory_latency_cycles = 100

[[level]]
name = "L1 \\"d\\""
size = "4 KiB"
ways = 4
latency_cycles = 4

[[level]]
name = "L2"
size = "64 KiB"
ways = 8
latency_cycles = 12
"""


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.trace = str(cls.root / "trace")
        (cls.root / "odd.c").write_text(PROGRAM)
        (cls.root / HEADER).write_text(INLINED)
        (cls.root / "machine.toml").write_text(MACHINE)
        program = str(cls.root / "odd")
        subprocess.run(
            ["memlode", "cc", "-O1", "odd.c", "-o", program, "-lpthread"], check=True, cwd=cls.root
        )
        subprocess.run(
            ["memlode", "record", "-o", cls.trace, "--", program], check=True, stderr=subprocess.DEVNULL
        )
        cls.report = json.loads(cls.memlode("report", "--json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def memlode(cls, command, *words):
        arguments = ["memlode", command, cls.trace, "-m", str(cls.root / "machine.toml"), *words]
        return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def export(self, name, *words):
        """The file of this name."""
        self.memlode("export", "--to", str(self.root / name), *words)
        return self.root / name

    @classmethod
    def memlode_text(cls, command):
        """What a command prints that simulates nothing."""
        return subprocess.run(["memlode", command, cls.trace], check=True, stdout=subprocess.PIPE).stdout.decode()

    def contexts(self):
        """A folder of the tables of the analysis of call paths."""
        return self.export("contexts", "--table", "contexts", "--format", "arrow")

    def totals(self):
        """What all metrics of a profile sum up to, in their order."""
        total = self.report["total"]
        counts = [total["accesses"], total["reads"], total["writes"], *total["misses"].values()]
        return [*counts, total["stall_cycles"], round(total["wait"]["cycles"])]

    def metrics(self):
        misses = [f"misses_{level}" for level in self.report["total"]["misses"]]
        return ["accesses", "reads", "writes", *misses, "stall_cycles", "wait_cycles"]

    def counters(self):
        """The metrics that are also known over time, as the analysis has no cost model: in the names of tracks."""
        return set(self.metrics()) - {"reads", "writes", "wait_cycles"}

    def test_tables(self):
        """CSV and both forms of Arrow have the report's numbers, and the page has all their columns."""
        self.export("csv", "--table", "all,strides,timeline", "--format", "csv")
        self.export("arrow", "--table", "all,strides,timeline", "--format", "arrow")
        self.export("arrows", "--table", "all,strides,timeline", "--format", "arrows")
        documented = set(re.findall(r"`([\w*]+)`", PAGE.read_text()))
        names = sorted(file.stem for file in (self.root / "csv").iterdir())
        self.assertEqual(len(names), 15)
        for name in names:
            with open(self.root / "csv" / f"{name}.csv", newline="", encoding="utf-8") as text:
                rows = list(csv.DictReader(text))
            table = pa.ipc.open_file(self.root / "arrow" / f"{name}.arrow").read_all()
            table.validate(full=True)
            self.assertEqual(table, pa.ipc.open_stream(self.root / "arrows" / f"{name}.arrows").read_all())
            self.assertEqual(len(rows), table.num_rows)
            for column in table.column_names:
                for row, value in zip(rows, table[column].to_pylist()):
                    written = float(row[column]) if isinstance(value, float) else row[column]
                    self.assertEqual(written, plain(value), f"{name}.{column}")
                for level in self.report["total"]["misses"]:
                    column = column.replace(level, "*")
                column = column.replace("written_", "missed_")
                if name not in ("strides", "timeline"):
                    self.assertIn(column, documented, f"{PAGE.name} does not have {name}.{column}")
        for name, of in [("lines", "lines"), ("members", "fields"), ("objects", "objects"), ("data", "data")]:
            table = pa.ipc.open_file(self.root / "arrow" / f"{name}.arrow").read_all()
            rows = self.report[of]
            self.assertEqual(table["accesses"].to_pylist(), [row["accesses"] for row in rows])
            self.assertEqual(table["wait_cycles"].to_pylist(), [row["wait"]["cycles"] for row in rows])
            for level in self.report["total"]["misses"]:
                self.assertEqual(table[f"misses_{level}"].to_pylist(), [row["misses"][level] for row in rows])
        sites = pa.ipc.open_file(self.root / "arrow" / "sites.arrow").read_all()
        self.assertEqual(sum(sites["accesses"].to_pylist()), self.report["total"]["accesses"])
        layouts = pa.ipc.open_file(self.root / "arrow" / "layouts.arrow").read_all().to_pylist()
        key = next(row for row in layouts if (row["type"], row["member"]) == ("node", "key"))
        self.assertEqual((key["first_bit"], key["bits"], key["type_bytes"]), (64, 64, 128))

    def test_one_table(self):
        """One table goes to standard output, and is what is in its file."""
        file = self.export("lines.csv")
        self.assertEqual(self.memlode("export", "--to", "-", "--format", "csv"), file.read_bytes())
        rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
        self.assertEqual(rows[0]["function"], self.report["lines"][0]["function"])
        self.assertIn(HEADER, {pathlib.Path(row["file"]).name for row in rows})

    def test_callgrind(self):
        """callgrind_annotate sums up the functions' own costs itself, and finds no line malformed."""
        file = self.export("callgrind.out.odd")
        text = file.read_text()
        file.write_text(re.sub("^summary: .*\n", "", text, flags=re.MULTILINE))
        printed = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--tree=both", str(file)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(printed.stderr, "")
        program = next(line for line in printed.stdout.splitlines() if "PROGRAM TOTALS" in line)
        numbers = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) \(", program)]
        self.assertEqual(numbers, self.totals())
        self.assertIn("key_of", printed.stdout)
        # What was inlined is called from the function that it was inlined into.
        self.assertRegex(printed.stdout, r"> .*:key_of \(1x\)")
        self.assertIn(f"summary: {' '.join(map(str, self.totals()))}\n", text)

    def test_folded(self):
        """Whoever takes the text behind the last blank of each line has the sum."""
        for metric, total in zip(self.metrics(), self.totals()):
            lines = self.export("stacks.folded", "--metric", metric).read_text().split("\n")
            self.assertEqual(lines.pop(), "")
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), total)
            self.assertTrue(all(line.isprintable() for line in lines))
        stacks = [line.rsplit(" ", 1)[0].split(";") for line in lines]
        self.assertIn(["work", "key_of_[i]"], [stack[-3:-1] for stack in stacks])
        self.assertTrue({len(stack) for stack in stacks} <= {2, 3, 4}, "a name is one part of a stack")

    def test_callers(self):
        """Accesses by call path are those that a reader counts who follows calls in the trace's text."""
        expected = naive_paths(self.memlode_text("dump"))
        self.assertEqual(sum(expected.values()), self.report["total"]["accesses"])
        found = Counter()
        for line in self.export("paths.folded", "--metric", "accesses").read_text().splitlines():
            stack, count = line.rsplit(" ", 1)
            functions = (name for name in stack.split(";")[:-1] if not name.endswith("_[i]"))
            found[tuple(map(word, functions))] += int(count)
        self.assertEqual(sorted(found.items()), sorted(expected.items()))
        self.assertIn(("main", "work", "deep"), found)
        # Each consumer has the caller of what was called.
        printed = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--tree=caller", str(self.export("callgrind.out.callers"))],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        self.assertRegex(printed, r"< .*:main \(\d+x\).*\n.* \* .*:work")
        table = pa.ipc.open_file(self.contexts() / "contexts.arrow").read_all()
        self.assertEqual(sum(table["accesses"].to_pylist()), self.report["total"]["accesses"])
        self.assertEqual(sum(table["stall_cycles"].to_pylist()), self.report["total"]["stall_cycles"])
        paths = Counter()
        for row in table.to_pylist():
            functions = zip(row["path_functions"], row["path_inlined"])
            path = tuple(word(name) for name, inlined in functions if not inlined)
            paths[path[::-1]] += row["accesses"]
        self.assertEqual(paths, expected)

    def test_ranges(self):
        """Parts of blocks are those that a reader finds who follows blocks and calls in the trace's text."""
        by_thread, by_path = naive_offsets(self.memlode_text("dump"))
        folder = self.export("ranges", "--table", "ranges", "--format", "arrow")
        rows = {
            name: [row for row in pa.ipc.open_file(folder / f"{name}.arrow").read_all().to_pylist()
                   if row["object_kind"] == "heap"]
            for name in ("ranges", "ranges_by_context")
        }  # fmt: skip
        made = lambda row: tuple(map(word, row["allocation_path"][::-1]))  # noqa: E731
        self.assertEqual(len(by_thread), 2)
        self.assertEqual({(made(row), f"0.{row['thread']}") for row in rows["ranges"]}, set(by_thread))
        for row in rows["ranges"]:
            offsets = sorted(by_thread[made(row), f"0.{row['thread']}"])
            width, count = row["bin_bytes"], len(offsets)
            bins = Counter(offset // width for offset in offsets)
            self.assertEqual(row["bins"], [bins[number] for number in range(len(row["bins"]))])
            down = lambda offset: offset // width * width  # noqa: E731,B023
            first, low, high, last = (offsets[at] for at in (0, -(-count // 20) - 1, -(-count * 19 // 20) - 1, -1))
            end = lambda offset: min(down(offset) + width, row["object_bytes"])  # noqa: E731,B023
            found = [row[name] for name in ("accesses", "from", "p5", "p95", "to")]
            self.assertEqual(found, [count, down(first), down(low), end(high), end(last)])
        found = defaultdict(Counter)
        for row in rows["ranges_by_context"]:
            functions = zip(row["path_functions"], row["path_inlined"])
            path = tuple(word(name) for name, inlined in functions if not inlined)
            found[made(row), path[::-1]].update({at: count for at, count in enumerate(row["bins"]) if count})
        width = rows["ranges"][0]["bin_bytes"]
        expected = {key: Counter(offset // width for offset in offsets) for key, offsets in by_path.items()}
        self.assertEqual(found, expected)
        self.assertIn((("main", "work"), ("main", "work", "deep")), found)

    def test_pprof(self):
        """Read by pprof's own schema."""
        raw = gzip.decompress(self.export("odd.pb.gz").read_bytes())
        arguments = ["protoc", f"--proto_path={HERE}", f"--python_out={self.root}", "profile.proto"]
        self.assertEqual(protoc.main(arguments), 0)
        sys.path.insert(0, str(self.root))
        profile = importlib.import_module("profile_pb2").Profile.FromString(raw)
        text = profile.string_table
        self.assertEqual([text[kind.type] for kind in profile.sample_type], self.metrics())
        self.assertEqual([sum(values) for values in zip(*(s.value for s in profile.sample))], self.totals())
        functions = {function.id: function for function in profile.function}
        chains = {
            tuple(text[functions[line.function_id].name] for line in location.line)
            for location in profile.location
        }
        self.assertIn(("key_of", "work"), chains)
        self.assertLessEqual(
            {id for s in profile.sample for id in s.location_id}, {place.id for place in profile.location}
        )
        labels = {text[label.key]: text[label.str] for label in profile.sample[0].label}
        self.assertEqual(set(labels), {"data", "object", "thread"})

    def test_firefox(self):
        """Weights of all threads sum up to the metric, and stacks lead to functions."""
        for metric, total in zip(self.metrics(), self.totals()):
            profile = json.loads(self.export("odd.firefox.json", "--metric", metric).read_text())
            threads = profile["threads"]
            self.assertEqual(sum(sum(thread["samples"]["weight"]) for thread in threads), total)
        # Over time, what the analysis has that knows no cost model.
        counters = {counter["name"]: sum(counter["samples"]["count"]) for counter in profile["counters"]}
        totals = dict(zip(self.metrics(), self.totals()))
        self.assertEqual(counters, {name: totals[name] for name in self.counters()})
        self.assertEqual(len(threads), 2)
        self.assertFalse(json.loads(self.export("f.firefox.json", "--only", "F1").read_text()).get("counters"))

    def test_firefox_profiler(self):
        """The Firefox Profiler's own reader has a call tree for each thread, which sums up to the metric."""
        for metric in ("wait_cycles", self.metrics()[3]):
            total = self.totals()[self.metrics().index(metric)]
            with Profiler(self.export("read.firefox.json", "--metric", metric), self.root) as profiler:
                threads = profiler.ask("thread", "list", "--limit", "0")["threads"]
                counters = profiler.ask("counter", "list")["counters"]
                infos = [profiler.ask("counter", "info", counter["counterHandle"]) for counter in counters]
                trees = [
                    profiler.ask("thread", "samples-top-down", "--limit", "100000", "--include-idle",
                                 "--thread", thread["threadHandle"])["regularCallTree"]
                    for thread in threads
                ]  # fmt: skip
            self.assertEqual(sum(tree["totalSamples"] for tree in trees), total, metric)
            # It has the counters, and draws something of each.
            self.assertEqual({info["name"] for info in infos}, self.counters())
            self.assertTrue(all(info["sampleCount"] > 100 and sum(info["graph"]) > 0 for info in infos), infos)
            for tree in trees:
                self.assertEqual(sum(child["totalSamples"] for child in tree["children"]), tree["totalSamples"])
        # What was inlined stands below the function that it was inlined into, and the data below that.
        paths = [path[-3:] for tree in trees for path in tree_paths(tree) if len(path) >= 3]
        inlined = [data for work, key_of, data in paths if "work" in work and "key_of" in key_of]
        self.assertEqual(set(inlined), {"node.key"}, paths)

    def test_sarif(self):
        """Valid by the standard's schema; each finding is a result at its line."""
        document = json.loads(self.export("odd.sarif").read_text())
        jsonschema.Draft7Validator(json.loads((HERE / "sarif-2.1.0.json").read_text())).validate(document)
        results = document["runs"][0]["results"]
        self.assertEqual(len(results), len(self.report["findings"]))
        for result, finding in zip(results, self.report["findings"]):
            place = result["locations"][0]["physicalLocation"]
            self.assertEqual(place["region"]["startLine"], finding["line"])
            self.assertEqual(result["properties"]["numbers"]["accesses"], finding["accesses"])
            self.assertIn(finding["function"], result["message"]["text"])

    def test_advice(self):
        """What is worth it is a result, too."""
        advice = json.loads(self.memlode("advise", "--json"))
        document = json.loads(self.export("advice.sarif", "--advise").read_text())
        jsonschema.Draft7Validator(json.loads((HERE / "sarif-2.1.0.json").read_text())).validate(document)
        edits = [
            result["properties"]["edits"]
            for result in document["runs"][0]["results"]
            if result["ruleId"] == "advice"
        ]
        self.assertEqual(edits, [found["edits"] for found in advice["worth_it"]])
        self.assertTrue(edits, "splitting `node` is worth it")

    def test_refused(self):
        """One sentence, and no file."""
        for words, says in [
            (["--to", "x.txt"], "--format"),
            (["--to", "x.csv", "--table", "nothing"], "choose from all, total"),
            (["--to", "x.folded", "--metric", "misses_L9"], "choose from accesses, reads"),
            (["--to", "x.sarif", "--table", "lines"], "--table is for csv"),
            (["--to", "x.csv", "--advise"], "--advise is for sarif"),
            (["--to", "-", "--format", "csv", "--table", "all"], "cannot go to standard output"),
            (["--to", "/nowhere/x.csv"], "/nowhere/x.csv cannot be written"),
        ]:
            arguments = ["memlode", "export", self.trace, "-m", str(self.root / "machine.toml"), *words]
            done = subprocess.run(arguments, capture_output=True, text=True, cwd=self.root)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(says, done.stderr)
            self.assertNotIn("panicked", done.stderr)
        self.assertEqual(list(self.root.glob("x.*")), [])


class Profiler:
    """A session of the Firefox Profiler's command line, whose daemon holds a profile."""

    NODE = HERE.parents[1] / "target" / "python"

    def __init__(self, profile, home):
        self.profile, self.environment = profile, {"PATH": "/usr/bin:/bin", "HOME": str(home)}

    def __enter__(self):
        self.run("load", str(self.profile), "--session", "test")
        return self

    def __exit__(self, *_):
        self.run("stop", "test")

    def ask(self, *words):
        """What a command prints as JSON."""
        return json.loads(self.run(*words, "--json", "--session", "test"))

    def run(self, *words):
        """What a command prints."""
        program = [self.NODE / "bin" / "node", self.NODE / "node" / "node_modules" / ".bin" / "profiler-cli"]
        done = subprocess.run([*program, *words], capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise AssertionError(f"profiler-cli {words}: {done.stderr}")
        return done.stdout


def tree_paths(node, above=()):
    """The names from the root to each leaf of a call tree."""
    here = above if node["name"] == "<root>" else (*above, node["name"])
    if not node["children"]:
        yield here
    for child in node["children"]:
        yield from tree_paths(child, here)


def word(name):
    """The part of a function's name that no format escapes: the linkage name of `quoted` has a quote in it."""
    return re.match(r"\w*", name).group().replace("quoted", "quo")


def followed(text):
    """Accesses and blocks of a trace without ranges, each as kind, thread, address, bytes and call path: the outermost
    function first, recursion folded."""
    stacks = defaultdict(list)
    for line in text.splitlines()[1:]:
        thread, _, kind, address, size, _, function, *_ = line.split("\t")
        frames = stacks[thread]
        if kind == "enter":
            while frames and frames[-1][1] <= int(address, 16):
                frames.pop()
            frames.append((word(function), int(address, 16)))
        elif kind == "exit":
            if frames and frames[-1][0] == word(function):
                frames.pop()
        elif kind in ("load", "store", "alloc", "free"):
            path = []
            for name, _ in frames:
                path = path[: path.index(name)] if name in path else path
                path.append(name)
            yield kind, thread, int(address, 16), 0 if size == "-" else int(size), tuple(path)


def naive_paths(text):
    """Accesses by call path."""
    return Counter(path for kind, *_, path in followed(text) if kind in ("load", "store"))


def naive_offsets(text):
    """Offsets of accesses in their blocks, by the path of the allocation and by thread, and by path of the access."""
    blocks, by_thread, by_path = {}, defaultdict(list), defaultdict(list)
    for kind, thread, address, size, path in followed(text):
        if kind == "alloc":
            blocks[address] = (size, path)
        elif kind == "free":
            blocks.pop(address, None)
        else:
            for base, (length, made) in blocks.items():
                if base <= address < base + length:
                    by_thread[made, thread].append(address - base)
                    by_path[made, path].append(address - base)
    return by_thread, by_path


def plain(value):
    """A value as CSV has it; fractions stay what they are."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return " | ".join(map(plain, value))
    return value if isinstance(value, float) else str(value)


if __name__ == "__main__":
    unittest.main()
