"""SQL about a trace: DuckDB over the tables of results and over every access. docs/sql.md."""

import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import memlode._native as _native

# The view of every access.
ACCESSES = "accesses"


class Accesses:
    """Every access of a trace, as a stream that is replayed whenever it is read; no row is stored."""

    def __init__(self, trace: _native.Trace, machine: str, told: Callable[[str], None]):
        self.trace, self.machine, self.told = trace, machine, told

    def __arrow_c_schema__(self) -> object:
        return self.trace.annotate("hits", self.machine, limit=1).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self.told("the trace is replayed for `accesses`; an export to Parquet is read faster, with --from")
        return self.trace.annotate("hits", self.machine).__arrow_c_stream__(requested_schema)


class Session:
    """A connection whose tables are those of a trace, made when a query names them."""

    def __init__(
        self,
        trace: _native.Trace | None,
        machine: str = "host",
        rows: str | PathLike[str] | None = None,
        told: Callable[[str], None] = lambda text: None,
    ):
        """`rows` is the Parquet file or folder that `accesses` are in; without it, they are replayed."""
        import duckdb

        self.connection = duckdb.connect()
        # A name in a query is a table, and no variable of whoever calls.
        self.connection.execute("SET python_enable_replacements = false")
        self.connection.execute("SET enable_progress_bar = false")
        self.trace, self.machine = trace, machine
        self.known: set[str] = set()
        self.there = list(trace.tables) if trace else []
        if rows is not None:
            # A view cannot have parameters.
            text = str(files_of(Path(rows))).replace("'", "''")
            try:
                self.connection.execute(f"CREATE VIEW {ACCESSES} AS FROM read_parquet('{text}')")
            except duckdb.Error as why:
                first = str(why).split("\n", 1)[0]
                raise _native.Error(f"{rows} is not what `memlode export` writes as Parquet: {first}") from why
        elif trace is not None:
            # The machine is looked for here, and not in a callback.
            trace.annotate("hits", machine, limit=1)
            self.connection.register(ACCESSES, Accesses(trace, machine, told))

    @property
    def tables(self) -> list[str]:
        """Names that queries may use."""
        return [ACCESSES, *self.there]

    def statements(self, text: str) -> list:
        """The statements of a text, in order; UnicodeEncodeError if it is none."""
        text.encode()
        return self.connection.extract_statements(text)

    def sql(self, statement):
        """Runs a statement; returns DuckDB's relation, or None if it has no rows."""
        text = statement if isinstance(statement, str) else statement.query
        words = {word.lower() for word in re.findall(r"\w+", text)}
        for name in self.there:
            if name not in self.known and name in words:
                self.connection.register(name, self.trace.table(name, self.machine))
                self.known.add(name)
        return self.connection.sql(statement)


def files_of(rows: Path) -> Path:
    """The Parquet file, or the files of the folder, that an export has made."""
    return rows / "*.parquet" if rows.is_dir() else rows


def sql(trace: _native.Trace, query: str, machine: str = "host"):
    """Asks one question; returns DuckDB's relation, which has df(), pl(), fetchall() and the like."""
    return Session(trace, machine).sql(query)
