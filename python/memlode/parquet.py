"""Every access as Parquet: zstd, row groups of a million, a file for each thread, names as dictionaries."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import memlode._native as _native

# Rows that a reader may skip or decode at once.
GROUP = 1_000_000
# Rows that wait in memory for their groups, of all threads.
WAITING = 4 * GROUP


class ThreadFile:
    """The file of a thread, and the rows that wait for their group."""

    def __init__(self, path: Path, schema):
        import pyarrow.parquet

        self.path = path
        # Numbers rarely repeat; names are dictionaries already, and stay that.
        names = [field.name for field in schema if str(field.type).startswith("dictionary")]
        self.writer = pyarrow.parquet.ParquetWriter(
            path, schema, compression="zstd", compression_level=1, use_dictionary=names
        )
        self.waiting, self.rows = [], 0

    def add(self, batch) -> None:
        """Takes rows, and writes each group that is full."""
        import pyarrow

        self.waiting.append(batch)
        self.rows += batch.num_rows
        if self.rows >= GROUP:
            table = pyarrow.Table.from_batches(self.waiting)
            full = table.num_rows // GROUP * GROUP
            self.write(table.slice(0, full))
            self.waiting = table.slice(full).to_batches()
            self.rows = table.num_rows - full

    def write(self, table) -> None:
        """Writes rows in groups; each has one dictionary of a name, however it grew from batch to batch."""
        self.writer.write_table(table.unify_dictionaries(), row_group_size=GROUP)

    def flush(self) -> None:
        """Writes what waits as a smaller group."""
        import pyarrow

        if self.waiting:
            self.write(pyarrow.Table.from_batches(self.waiting))
        self.waiting, self.rows = [], 0


class Written:
    """What was written: the file or folder, its files and the number of accesses."""

    def __init__(self, path: Path, files: list[Path], rows: int):
        self.path, self.files, self.rows = path, files, rows

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.stat().st_size for file in self.files)


def write_accesses(
    trace: _native.Trace,
    path: str | os.PathLike[str],
    machine: str = "host",
    what: str = "hits",
    advance: Callable[[int], None] = lambda rows: None,
    **options,
) -> Written:
    """Writes every access of a trace: to a file if one thread made them, else to a folder with a file for each.

    `what` and `options` are those of Trace.annotate. `advance` is told how many accesses are written so far. A file
    that is there is replaced when the new one is whole; a folder is not.
    """
    path = Path(path)
    if path.is_dir():
        raise _native.Error(f"{path} is a folder already: remove it, or name another file")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.mkdir()
    except OSError as error:
        raise _native.Error(f"{path} cannot be written: {error.strerror}") from error
    try:
        names, rows = write_threads(trace.annotate(what, machine, **options), beside, advance)
        if len(names) == 1:
            os.replace(beside / names[0], path)
            return Written(path, [path], rows)
        path.unlink(missing_ok=True)
        os.replace(beside, path)
        return Written(path, [path / name for name in names], rows)
    except OSError as error:
        raise _native.Error(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_threads(accesses: _native.Annotated, folder: Path, advance) -> tuple[list[str], int]:
    """Writes the file of each thread; returns their names and how many accesses there were."""
    import pyarrow

    schema = pyarrow.schema(accesses)
    files: dict[tuple[int, int], ThreadFile] = {}
    rows = 0
    try:
        for batch in accesses:
            batch = pyarrow.record_batch(batch)
            rows += batch.num_rows
            for thread, part in by_thread(batch):
                if thread not in files:
                    files[thread] = ThreadFile(folder / "thread-{}.{}.parquet".format(*thread), schema)
                files[thread].add(part)
            if sum(file.rows for file in files.values()) > WAITING:
                max(files.values(), key=lambda file: file.rows).flush()
            advance(rows)
        if not files:
            files[(0, 0)] = ThreadFile(folder / "thread-0.0.parquet", schema)
        for file in files.values():
            file.flush()
    finally:
        for file in files.values():
            file.writer.close()
    return [file.path.name for file in files.values()], rows


def by_thread(batch):
    """Yields the process and thread of some rows, and these rows."""
    import pyarrow.compute as compute

    process, thread = batch["process"], batch["thread"]
    few = [compute.min_max(column) for column in (process, thread)]
    if all(ends["min"] == ends["max"] for ends in few):
        yield (process[0].as_py(), thread[0].as_py()), batch
        return
    for number in compute.unique(process).to_pylist():
        of_process = batch.filter(compute.equal(process, number))
        for index in compute.unique(of_process["thread"]).to_pylist():
            yield (number, index), of_process.filter(compute.equal(of_process["thread"], index))


def write_table(table: _native.ResultTable, path: str | os.PathLike[str]) -> None:
    """Writes a table of results."""
    import pyarrow.parquet

    try:
        pyarrow.parquet.write_table(table.arrow(), path, compression="zstd")
    except OSError as error:
        raise _native.Error(f"{path} cannot be written: {error.strerror or error}") from error
