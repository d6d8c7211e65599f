"""What the command line asks of this package: `memlode sql`, `memlode spark`, and `memlode export` to Parquet."""

import argparse
import contextlib
import csv
import decimal
import importlib
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path

import memlode._native as _native

# Columns of a table that goes to a file or a pipe: none is cut.
WIDE = 100_000

PROMPT, MORE = "memlode> ", "    ...> "
HELP = "End a query with `;`. `.tables` lists what there is, `.quit` or Ctrl-D leaves."


def main(words: list[str]) -> int:
    """Does what the words say; returns the exit status."""
    options = parser().parse_args(words)
    status = performed(options)
    if options.memory:
        say(_native._peak_memory())
    return status


def performed(options) -> int:
    """Does what the options say; returns the exit status, of errors, too."""
    try:
        status = {"sql": sql, "export": export, "spark": spark}[options.command](options)
        sys.stdout.flush()
        return status
    except _native.Error as why:
        return failed(str(why))
    except ModuleNotFoundError as why:
        return failed(
            f"{why.name}, which `memlode {options.command}` takes here, is not installed: "
            f"{sys.executable} -m pip install {why.name}"
        )
    except UnicodeEncodeError:
        return failed("the query, or the name of a file in it, is not UTF-8")
    except BrokenPipeError:
        # The reader has seen enough; nothing more goes there at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Words as `memlode` says them, which has checked them."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--memory", action="store_true")
    shared.add_argument("--trace", type=Path)
    shared.add_argument("--machine", default="host")
    commands = argparse.ArgumentParser(prog="memlode")
    each = commands.add_subparsers(dest="command", required=True)
    asks = each.add_parser("sql", parents=[shared])
    asks.add_argument("--query")
    asks.add_argument("--from", dest="rows", type=Path)
    asks.add_argument("--format", default="table")
    asks.add_argument("--top", type=int, default=40)
    writes = each.add_parser("export", parents=[shared])
    writes.add_argument("--to", type=Path, required=True)
    writes.add_argument("--table", action="append", default=[])
    submits = each.add_parser("spark", parents=[shared])
    submits.add_argument("--print", action="store_true")
    submits.add_argument("words", nargs="*")
    return commands


def say(text: str) -> None:
    """Tells the user, whatever a name has in it."""
    print(f"memlode: {printable(text)}", file=sys.stderr)


def failed(why: str) -> int:
    """Tells an error."""
    say(f"error: {why}")
    return 1


def printable(text: str) -> str:
    """A text whose characters cannot command a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def sql(options) -> int:
    """Answers queries: the one of the command line, those of standard input, or those that are typed."""
    import duckdb

    from memlode.query import Session

    trace = _native.open(options.trace) if options.trace else None
    session = Session(trace, options.machine, options.rows, say)
    if options.query is None and sys.stdin.isatty():
        return shell(session, options)
    try:
        run(session, sys.stdin.read() if options.query is None else options.query, options)
    except duckdb.InterruptException:
        return 130
    except duckdb.Error as why:
        return failed(explained(why, session))
    return 0


def explained(why, session) -> str:
    """What DuckDB says, and which tables there are where a name is unknown."""
    unknown = "Table with name" in str(why)
    return f"{why}\nThere are the tables {', '.join(session.tables)}." if unknown else str(why)


def shell(session, options) -> int:
    """Reads queries from a terminal until its end."""
    import duckdb

    # From here on, lines can be edited, where Python was built with it.
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("readline")
    print(HELP)
    text = ""
    while True:
        try:
            line = input(MORE if text else PROMPT)
        except EOFError:
            print()
            return 0
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if not text and line.strip().startswith("."):
            if line.strip() in (".quit", ".exit"):
                return 0
            print(", ".join(session.tables) if line.strip() == ".tables" else HELP)
            continue
        text = f"{text}{line}\n"
        if not text.rstrip().endswith(";"):
            text = text if text.strip() else ""
            continue
        try:
            run(session, text, options)
        except (duckdb.Error, _native.Error) as why:
            failed(explained(why, session))
        except KeyboardInterrupt:
            print()
        text = ""


def run(session, text: str, options) -> None:
    """Runs statements one after the other, and shows the rows of each that has some."""
    show = {"table": show_table, "csv": show_csv, "json": show_json, "arrow": show_arrow}[options.format]
    for statement in session.statements(text):
        found = session.sql(statement)
        # Statements that change something say how many rows they changed.
        is_count = statement.type.name != "SELECT" and found is not None and found.columns == ["Count"]
        if found is not None and not is_count:
            show(found, options)
            sys.stdout.flush()


def show_table(found, options) -> None:
    """Rows in a frame, which DuckDB draws; it shows what commands a terminal as escapes."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    found.show(max_width=width, max_rows=options.top)


def show_csv(found, options) -> None:
    """Comma-separated values, as `memlode export` has them."""
    escaped = printable if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([escaped(column) for column in found.columns])
    for row in found.iter_rows():
        writer.writerow([escaped(plain(value)) for value in row])


def plain(value) -> str:
    """A value as a field of CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return " | ".join(map(plain, value)) if isinstance(value, list) else str(value)


def show_json(found, options) -> None:
    """A list of objects, one a line."""
    columns, before = found.columns, "[\n"
    for row in found.iter_rows():
        fields = {column: number(value) for column, value in zip(columns, row)}
        sys.stdout.write(before + json.dumps(fields, default=str))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")


def number(value):
    """A value as JSON has it: what is no number is nothing."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_arrow(found, options) -> None:
    """An Arrow IPC stream."""
    import pyarrow

    batches = found.to_arrow_reader()
    with pyarrow.ipc.new_stream(sys.stdout.buffer, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def spark(options) -> int:
    """Submits a script to Spark, with this package."""
    from memlode.submit import submit

    return submit(options.words, options.print)


def export(options) -> int:
    """Writes tables of results, or every access, as Parquet."""
    from memlode import parquet

    trace = _native.open(options.trace)
    if len(options.table) == 1:
        parquet.write_table(trace.table(options.table[0], options.machine), options.to)
        return 0
    if options.table:
        try:
            options.to.mkdir(parents=True, exist_ok=True)
        except OSError as why:
            return failed(f"{options.to} cannot be made a folder, which several tables need: {why.strerror}")
        for name in options.table:
            # Some tables of an analysis are made with arguments only, which an export has not.
            with contextlib.suppress(_native.NotMade):
                parquet.write_table(trace.table(name, options.machine), options.to / f"{name}.parquet")
        return 0
    began, worked = time.perf_counter(), time.process_time()
    written = parquet.write_accesses(trace, options.to, options.machine)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    for note in trace.notes:
        say(f"note: {note}")
    files = "one file" if len(written.files) == 1 else f"{len(written.files)} files, one a thread"
    say(
        f"{written.rows:,} accesses in {written.bytes / 2**20:,.1f} MiB at {written.path}, {files}: "
        f"{written.rows / took / 1e6:.1f} M a second, {written.rows / worked / 1e6:.1f} M a second of processor time"
    )
    return 0
