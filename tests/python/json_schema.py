"""`docs/json.schema.json`: what each command prints with `--json` is valid, and nothing of it is missing there.

The schema allows no member that it does not name, so a member that is added to a type and not to the schema fails here,
and so does one that the schema requires and that is not printed.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "json.schema.json"

# Two threads share lines and a lock, one of them waits for the heap, and a copy is not recorded.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { long key; char payload[40]; int kind; struct item *next; };
enum { ITEMS = 30000 };
static struct { volatile long hits; pthread_mutex_t lock; } counters[2];
static long locked;
static int updates = 3000;
static void *work(void *argument) {
  long own = (long)argument;
  struct item *items = calloc(ITEMS, sizeof *items);
  for (int i = 0; i < ITEMS; i++)
    items[i].next = &items[(i * 7919L + 1) % ITEMS];
  long sum = 0;
  for (int round = 0; round < 4; round++)
    for (int i = 0; i < ITEMS; i++)
      sum += items[i].key + items[i].kind;
  for (struct item *at = items; sum < ITEMS; at = at->next)
    sum++;
  for (int i = 0; i < updates; i++) {
    counters[own].hits++;
    pthread_mutex_lock(&counters[0].lock);
    locked++;
    pthread_mutex_unlock(&counters[0].lock);
  }
  free(items);
  return NULL;
}
int main(int argc, char **argv) {
  pthread_t other;
  if (argc > 1)
    updates = atoi(argv[1]);
  pthread_mutex_init(&counters[0].lock, NULL);
  pthread_create(&other, NULL, work, (void *)1);
  work(NULL);
  pthread_join(other, NULL);
  printf("%ld\n", locked);
}
"""

# `@` is the trace.
COMMANDS = [
    ["report", "@", "--context", "1"],
    ["report", "@", "--threads", "recorded"],
    ["report", "@", "--function", "work"],
    ["report", "burst"],
    ["sim", "@", "-m", "zen4", "--threads", "parallel"],
    ["sim", "@", "-m", "skylake-sp", "--pages", "2MiB@heap"],
    ["sim", "@", "--time"],
    ["annotate", "@", "--asm"],
    ["annotate", "@", "program.c"],
    ["replay", "@", "--analyse", "reuse", "--analyse", "strides"],
    ["timeline", "@", "--every", "50k"],
    ["alias", "@"],
    ["diff", "@", "@"],
    ["diff", "@", "--other-machine", "zen4"],
    ["whatif", "@", "--edit", "split item: hot=key,kind by=index"],
    ["advise", "@"],
]


class Printed(unittest.TestCase):
    """Each document against the schema."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.here = pathlib.Path(cls.folder.name)
        (cls.here / "program.c").write_text(PROGRAM)
        cls.run_memlode("cc", "-O1", "-g", "-pthread", "program.c", "-o", "program")
        cls.run_memlode("record", "-o", "trace", "--", "./program")
        # Long enough for the collector to come to it, whatever else runs.
        cls.run_memlode("record", "--burst", "1ms/20ms", "-o", "burst", "--", "./program", "2000000")
        with open(SCHEMA) as file:
            cls.schema = json.load(file)

    @classmethod
    def run_memlode(cls, *words):
        done = subprocess.run(["memlode", *words], cwd=cls.here, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def document(self, words):
        words = ["trace" if word == "@" else word for word in words]
        machine = [] if "-m" in words else ["-m", "generic"]
        return json.loads(self.run_memlode(*words, *machine, "--json"))

    def problems(self, document):
        """What is wrong with a document, held against the schema of its own kind."""
        kinds = {one["title"]: one for one in self.schema["oneOf"]}
        schema = {"$schema": self.schema["$schema"], "$defs": self.schema["$defs"], **kinds[document["format"]]}
        validator = jsonschema.Draft202012Validator(schema)
        return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_what_is_printed_is_valid(self):
        seen = set()
        for words in COMMANDS:
            with self.subTest(" ".join(words)):
                document = self.document(words)
                seen.add(document["format"])
                self.assertEqual(self.problems(document), [])
        self.assertEqual(seen, {one["title"] for one in self.schema["oneOf"]})

    def test_what_is_missing_or_unknown_is_found(self):
        document = self.document(["report", "@"])
        for change in (
            lambda other: other["total"].pop("accesses"),
            lambda other: other["lines"][0].update(unknown=1),
            lambda other: other["lines"][0].update(reads=-1),
            lambda other: other["objects"][0].update(kind="nowhere"),
            lambda other: other["machine"].update(latencies="guessed"),
        ):
            other = copy.deepcopy(document)
            change(other)
            self.assertNotEqual(self.problems(other), [])


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
