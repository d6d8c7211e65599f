"""Analyses in parts: plan(), run each task wherever you like, finish(). docs/spark.md has the page."""

import copy
import json
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, Protocol

import memlode._native as _native
from memlode import elsewhere


class Analysis(Protocol):
    """An analysis of your own. Its object is pickled: once to each task, and back with what it has seen."""

    # Into what the trace is cut: `stretches` of replay order; `chunks` in any order, without levels, objects and
    # numbers of accesses, which is the fastest; or `whole`, as one task.
    cut: str = "stretches"
    # Accesses that missed the first level alone.
    misses_only: bool = False

    def observe(self, batch: _native.RecordBatch) -> None:
        """Takes a batch of accesses, as `pyarrow.record_batch(batch)` reads it."""

    def merge(self, later: "Analysis") -> None:
        """Adds what another part showed; of stretches, the one that follows."""

    def finish(self) -> Any:
        """Returns what was found."""


class Table:
    """A table of an analysis: its name, its title, and rows by column."""

    def __init__(self, name: str, title: str, rows: list[dict[str, Any]]):
        self.name, self.title, self.rows = name, title, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self.name, self.rows) == (other.name, other.rows)

    def __repr__(self) -> str:
        return f"<memlode.Table {self.name}: {len(self.rows)} rows>"

    def to_arrow(self):
        """The rows as a pyarrow.Table; names that have parts, such as a line's file and number, are structures."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows)


class Tables(list):
    """Tables in the order of the questions, also by name; `notes` say what is missing from the trace.

    `peak_bytes` is the most memory of a process that ran a task of these.
    """

    def __init__(self, tables: Iterable[Table], notes: Sequence[str] = (), peak_bytes: int | None = None):
        super().__init__(tables)
        self.notes = list(notes)
        self.peak_bytes = peak_bytes

    def __getitem__(self, key):
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [table for table in self if table.name == key]
        if not found:
            raise KeyError(f"{key}; there are {', '.join(table.name for table in self)}")
        return found[0]


class Seen(NamedTuple):
    """What an analysis of one's own has seen of a part."""

    part: int
    parts: int
    analysis: Any


class OwnTask:
    """One part of a trace, and an analysis of one's own that looks at it."""

    def __init__(self, task: "_native.Task | elsewhere.FarTask", analysis: Analysis):
        self.task, self.analysis = task, analysis

    def run(self) -> Seen:
        """Shows the part to a copy of the analysis."""
        analysis = copy.deepcopy(self.analysis)
        for batch in self.task.annotate(misses_only=getattr(analysis, "misses_only", False)):
            analysis.observe(batch)
        return Seen(self.task.part, self.task.parts, analysis)

    def __repr__(self) -> str:
        return f"<memlode task {self.task.part} of {self.task.parts}: {type(self.analysis).__name__}>"


class HotCold:
    """A task that counts the accesses to the members of types; one, for misses depend on all that came before."""

    def __init__(self, path, machine: str = "host"):
        (self.task,) = plan_rows(path, "whole", 1, machine)

    def run(self) -> Table:
        """A row for each member of the types that are accessed much, as they lie."""
        return Table("hot_cold", "Members of types, hot and cold", json.loads(self.task._hot_cold()))


def hot_cold(path, *, machine: str = "host") -> Table:
    """Members of types with their shares of accesses and misses, hot or cold by the rules that `advise` splits by."""
    return HotCold(path, machine).run()


def plan(path, analyses, parts: int, machine: str = "host") -> list:
    """Cuts a trace into parts: tasks that are small, can be pickled, and have run().

    `analyses` are names of analyses of every access with their arguments, such as "shared:rule=source", one or
    several; or one analysis of your own. What cannot be cut is one task. The trace may be elsewhere: then `path` is an
    address that pyarrow.fs knows, such as s3://bucket/shop.memlode.
    """
    if hasattr(analyses, "observe"):
        cut = getattr(analyses, "cut", "stretches")
        return [OwnTask(task, analyses) for task in plan_rows(path, cut, parts, machine)]
    names = [analyses] if isinstance(analyses, str) else list(analyses)
    return _planned(path, lambda path: _native.plan(path, names, parts, machine))


def plan_rows(path, cut: str, parts: int, machine: str = "host") -> list:
    """Cuts a trace into parts for who looks at its accesses by themselves."""
    return _planned(path, lambda path: _native.plan_rows(path, cut, parts, machine))


def _planned(path, make) -> list:
    """The tasks that `make` makes of a trace's path. Those of a trace elsewhere go there when they run."""
    if not elsewhere.is_address(path):
        return make(path)
    if here := elsewhere.path_of(path):
        return make(here)
    with elsewhere.copied(path) as copy:
        return [elsewhere.FarTask(task, path) for task in make(copy.folder)]


def finish(results, path=None):
    """Puts together what the tasks of a plan returned, in any order: Tables, or what an analysis of your own found.

    A result that is there twice counts once. The trace is opened where the tasks found it, unless `path` says where
    it is.
    """
    results = list(results)
    if not any(isinstance(result, Seen) for result in results):
        text, peak_bytes = _finished(results, path)
        found = json.loads(text)
        tables = [Table(table["table"], table["title"], table["rows"]) for table in found["tables"]]
        return Tables(tables, [note["text"] for note in found["notes"]], peak_bytes)
    by_part = {seen.part: seen for seen in results}
    for part in range(results[0].parts):
        if part not in by_part:
            missing = f"part {part} of {results[0].parts} is missing"
            raise _native.Error(f"the results are not parts of one whole: {missing}")
    whole, *later = (by_part[part].analysis for part in sorted(by_part))
    for analysis in later:
        whole.merge(analysis)
    return whole.finish()


def _finished(results, path) -> tuple[str, int | None]:
    """Tables of tasks' results, as JSON, where the trace is here or elsewhere; and the most memory of a task."""
    far = [result for result in results if isinstance(result, elsewhere.Found)]
    if far:
        path = path or far[0].address
        results = [result.found for result in far]
    if not elsewhere.is_address(path):
        return _native._finish(results, path)
    if here := elsewhere.path_of(path):
        return _native._finish(results, here)
    with elsewhere.copied(path) as copy:
        found, peak_bytes = _native._finish(results, copy.folder)
    for folder in (copy.folder, *(result.folder for result in far)):
        found = found.replace(json.dumps(folder)[1:-1], json.dumps(path)[1:-1])
    return found, peak_bytes


def _run_one(task):
    return task.run()


def run(path, analyses, *, parts: int | None = None, pool=None, machine: str = "host"):
    """Plans, runs and finishes: in processes of this machine, or in a pool that has `map`.

    There are as many parts as processors, unless `parts` says otherwise.
    """
    parts = parts or os.cpu_count() or 1
    tasks = plan(path, analyses, parts, machine)
    if pool is not None:
        return finish(pool.map(_run_one, tasks), path)
    if len(tasks) == 1:
        return finish([tasks[0].run()], path)
    # A process that was forked while others of its threads held locks would wait for these.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(tasks), os.cpu_count() or 1), mp_context=spawn) as processes:
        return finish(processes.map(_run_one, tasks), path)
