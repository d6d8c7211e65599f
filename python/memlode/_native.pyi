"""Every memory access of a recorded program, with its names and the cache level that answered."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

__version__: str

class Error(Exception):
    """A trace or a machine cannot be used; the text says why."""

class NotMade(Error):
    """An analysis makes this table with arguments only."""

def open(path: str | PathLike[str]) -> Trace:
    """Opens the trace directory that `memlode run` or `memlode record` made."""

def machines() -> list[str]:
    """The machines that are known by name, besides `host`."""

@final
class Trace:
    """A recorded trace."""

    def annotate(
        self,
        what: Literal["hits", "causes"] = "hits",
        machine: str = "host",
        *,
        thread: str | None = None,
        levels: Sequence[str] | None = None,
        misses_only: bool = False,
        limit: int | None = None,
        page_bytes: int | None = None,
    ) -> Annotated:
        """Replays the trace through the caches of `machine`: `host`, a name, or a .toml file.

        Gives every access with its names and the level that answered (`what="hits"`), or also why each level missed
        (`what="causes"`, with pages of `page_bytes`). `thread`, `levels`, `misses_only` and `limit` choose some; all are
        simulated. docs/replay.md lists the columns.
        """

    def advise(
        self,
        machine: str = "host",
        *,
        types: int = 3,
        budget: int | None = None,
        found: Callable[[str, float], object] | None = None,
    ) -> dict[str, Any]:
        """Tries layouts of the data that the program waits for, as `memlode advise` does, and returns what that prints with `--json`.

        `found(edit, gain)` is called with edits that are worth it as soon as they are found. Ctrl-C ends the search, and so does
        what `found` raises. Blocks are placed by a model of glibc's `malloc`.
        """

    @property
    def tables(self) -> list[str]:
        """Names of the tables that `table` makes."""

    def table(self, name: str, machine: str = "host") -> ResultTable:
        """A table of results, as `memlode export` has it, of a replay through the caches of `machine`.

        A report that is kept beside the trace is read; else it is made, and kept. docs/export.md lists the columns.
        """

    def __getattr__(self, name: str) -> ResultTable:
        """A table by its name, for the host: `trace.lines`."""

    def sql(self, query: str, machine: str = "host") -> duckdb.DuckDBPyRelation:
        """Asks DuckDB, which has to be installed, about the tables and about `accesses`, which is every access."""

    @property
    def path(self) -> Path:
        """The directory."""

    @property
    def command(self) -> list[str]:
        """The command that was recorded."""

    @property
    def notes(self) -> list[str]:
        """What is missing from the trace, a sentence each; empty if it is whole."""

@final
class Annotated(Iterator[RecordBatch]):
    """Accesses in replay order, as record batches. It can be gone through once: with `for`, or by what takes an Arrow stream."""

    def __iter__(self) -> Annotated: ...
    def __next__(self) -> RecordBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RecordBatch:
    """Some accesses: columns of equal length, which others take by the Arrow PyCapsule interface."""

    @property
    def num_rows(self) -> int:
        """Number of accesses."""

    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ResultTable:
    """A table of results: columns of equal length, which others take by the Arrow PyCapsule interface."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""

    def __len__(self) -> int: ...
    def arrow(self) -> pyarrow.Table:
        """The table as pyarrow's."""

    def pandas(self) -> pandas.DataFrame:
        """The table as pandas' frame; names are categories."""

    def polars(self) -> polars.DataFrame:
        """The table as Polars' frame."""

    def csv(self) -> str:
        """The table as comma-separated values, as `memlode export` writes them."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Task:
    """One part of a trace, and the analyses that look at it. It is small, and can be pickled."""

    cut: Literal["chunks", "stretches", "lines", "threads", "whole"]
    part: int
    parts: int
    analyses: list[str]

    def run(self, *, tables: bool = True) -> bytes:
        """Looks at the part, and returns what was found, for `finish`.

        A stretch reads and keeps `tables` beside the trace, of what parts need of the accesses before them.
        """

    def _at(self, path: str) -> Task: ...
    def _columns(self) -> Annotated: ...
    def _hot_cold(self) -> str: ...
    def _chunks(self, path: str) -> list[tuple[int, int, int]]: ...
    def annotate(self, *, misses_only: bool = False) -> Annotated:
        """The accesses of the part. Those of a part of chunks have no level, object and number."""

def plan(path: str | PathLike[str], analyses: Sequence[str], parts: int, machine: str = "host") -> list[Task]:
    """Cuts a trace into parts for some analyses of every access. What cannot be cut is one task."""

def plan_rows(path: str | PathLike[str], cut: str, parts: int, machine: str = "host") -> list[Task]:
    """Cuts a trace into parts for who looks at its accesses by themselves."""
