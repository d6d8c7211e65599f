"""Traces in other file systems, by their address, such as `s3://bucket/shop.memlode`. docs/spark.md has the page.

The native engine reads directories. So a task copies what it reads into a folder that ends with it: all that names
things, each file once; and of the threads' files the ranges of its chunks, which the index knows. Their other bytes are
holes, which take no room.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import memlode._native as _native

# Bytes of one request.
MOST = 16 << 20


def is_address(path) -> bool:
    """True of an address, and not of a path."""
    return isinstance(path, str) and "://" in path


def path_of(address: str) -> str | None:
    """The path of a trace in this machine's files; None of one elsewhere."""
    from pyarrow.fs import LocalFileSystem

    files, path = _found(address)
    return path if isinstance(files, LocalFileSystem) else None


class Found(NamedTuple):
    """What a task found in a trace elsewhere, and the folder that it speaks of instead."""

    address: str
    folder: str
    found: bytes


class FarTask:
    """One part of a trace elsewhere."""

    def __init__(self, task: _native.Task, address: str):
        self.task, self.address = task, address
        self.cut, self.part, self.parts, self.analyses = task.cut, task.part, task.parts, task.analyses

    def run(self) -> Found:
        """Copies the part, runs the task on it, and returns what it found, for `finish`."""
        with self._here() as (folder, task):
            # Tables would be kept in a folder that ends with the task.
            return Found(self.address, folder, task.run(tables=False))

    def annotate(self, *, misses_only: bool = False) -> Iterator[_native.RecordBatch]:
        """The accesses of the part, batch by batch."""
        with self._here() as (_, task):
            yield from task.annotate(misses_only=misses_only)

    def _hot_cold(self) -> str:
        with self._here() as (_, task):
            return task._hot_cold()

    def schema(self):
        """The columns of its accesses, as pyarrow has them."""
        import pyarrow

        with copied(self.address) as copy:
            return pyarrow.schema(self.task._at(copy.folder)._columns())

    @contextlib.contextmanager
    def _here(self) -> Iterator[tuple[str, _native.Task]]:
        with copied(self.address) as copy:
            copy.fetch(self.task._chunks(copy.folder))
            yield copy.folder, self.task._at(copy.folder)

    def __repr__(self) -> str:
        return f"{self.task!r} at {self.address}"


@contextlib.contextmanager
def copied(address: str) -> Iterator["Copy"]:
    """A copy of what names things in a trace, and of the headers of its chunks, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="memlode-") as folder:
        try:
            copy = Copy(address, folder)
            copy.take_headers()
            yield copy
        except FileNotFoundError as why:
            raise _native.Error(f"{address} lacks a file: {why}") from None
        except _native.Error as why:
            raise _native.Error(str(why).replace(folder, address)) from None


class Copy:
    """A folder with some of a trace."""

    def __init__(self, address: str, folder: str):
        self.address, self.folder = address, folder
        self.files, self.root = _found(address)
        # By thread, which its process and its number there name: where each chunk begins and ends in its file.
        self.places: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        self.manifest = self._manifest()
        self._take("events.ndjson")
        for module in sorted(self._modules()):
            # One that is not there is told when the trace is opened, as of a trace here.
            with contextlib.suppress(FileNotFoundError):
                self._take(f"modules/{module:04}.mlm")

    def take_headers(self) -> None:
        """Makes the threads' files, with holes in the place of chunks."""
        try:
            index = self._take("chunks.mlx")
        except FileNotFoundError:
            raise _native.Error(
                f"{self.address} has no index of its chunks (chunks.mlx), without which all of it would have to be "
                "searched for them: copy it to this machine"
            ) from None
        try:
            chunks = _native._index(index)
        except _native.Error as why:
            raise _native.Error(f"{self.address}: {why}: copy it to this machine") from None
        lengths: dict[tuple[int, int], int] = {}
        headers: dict[tuple[int, int], tuple[int, bytes]] = {}
        header_bytes = len(index) // max(len(chunks), 1)
        for number, (process, thread, sequence, length) in enumerate(chunks):
            begin = lengths.get((process, thread), 0)
            lengths[process, thread] = begin + length
            self.places.setdefault((process, thread), {})[sequence] = begin, begin + length
            headers[process, thread] = begin, index[number * header_bytes :][:header_bytes]
        for thread in self.manifest["threads"]:
            if thread["bytes"] != lengths.get((thread["process"], thread["thread"]), 0):
                raise _native.Error(f"the index of chunks of {self.address} lacks some: copy it to this machine")
        for name, (begin, header) in headers.items():
            with self._create(_file(*name)) as file:
                file.truncate(lengths[name])
                # By its last header an index is known to be that of a file.
                os.pwrite(file.fileno(), header, begin)

    def fetch(self, chunks: Iterable[tuple[int, int, int]]) -> None:
        """Fills the places of these chunks."""
        wanted: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for process, thread, sequence in chunks:
            wanted.setdefault((process, thread), []).append(self.places[process, thread][sequence])
        for name, places in wanted.items():
            with self._open(_file(*name)) as there, open(os.path.join(self.folder, _file(*name)), "r+b") as here:
                for begin, end in _joined(sorted(places)):
                    os.pwrite(here.fileno(), self._bytes(there, begin, end), begin)

    def _manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads(self._take("manifest.json"))
        except FileNotFoundError:
            raise _native.Error(f"there is no trace at {self.address}: it has no manifest.json") from None
        except ValueError as why:
            raise _native.Error(f"the manifest of {self.address} is damaged: {why}") from None
        if not _is_manifest(manifest):
            raise _native.Error(f"the manifest of {self.address} is damaged: it does not name its threads")
        if not manifest.get("complete"):
            raise _native.Error(f"the recording at {self.address} was not finished: copy it to this machine")
        return manifest

    def _modules(self) -> set[int]:
        """Numbers of modules that were loaded."""
        modules = set()
        with open(os.path.join(self.folder, "events.ndjson"), "rb") as events:
            for line in events:
                # Of a damaged line the trace speaks when it is opened.
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict) and isinstance(event.get("module"), int):
                        modules.add(event["module"])
        return modules

    def _take(self, name: str) -> bytes:
        """Copies a file, and returns its bytes."""
        with self._open(name) as there:
            contents = self._bytes(there, 0, there.size())
        with self._create(name) as here:
            here.write(contents)
        return contents

    def _create(self, name: str):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return open(path, "wb")

    def _open(self, name: str):
        try:
            return self.files.open_input_file(f"{self.root}/{name}")
        except FileNotFoundError:
            raise
        except OSError as why:
            raise _native.Error(f"{self.address}/{name} cannot be read: {why}") from None

    def _bytes(self, there, begin: int, end: int) -> bytes:
        """Bytes of a file, all of them."""
        try:
            contents = b"".join(there.read_at(min(MOST, end - at), at) for at in range(begin, end, MOST))
        except OSError as why:
            raise _native.Error(f"{self.address} cannot be read: {why}") from None
        if len(contents) != end - begin:
            raise _native.Error(f"a file of {self.address} ends before byte {end}, which its index speaks of")
        return contents


def _found(address: str):
    """The file system of an address, and the path there."""
    import pyarrow
    from pyarrow.fs import FileSystem

    try:
        files, path = FileSystem.from_uri(address)
    except (pyarrow.ArrowException, OSError, ValueError) as why:
        raise _native.Error(f"{address} is no address of a trace: {why}") from None
    return files, path.rstrip("/")


def _is_manifest(manifest: Any) -> bool:
    """True if it has the lengths of its threads' files; the engine reads the rest."""
    threads = manifest.get("threads") if isinstance(manifest, dict) else None
    keys = ("process", "thread", "bytes")

    def is_thread(of: Any) -> bool:
        return isinstance(of, dict) and all(isinstance(of.get(key), int) for key in keys)

    return isinstance(threads, list) and all(map(is_thread, threads))


def _file(process: int, thread: int) -> str:
    return f"threads/p{process:04}-t{thread:04}.mlt"


def _joined(places: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Places that follow each other as one, up to the length of a request."""
    begin, end = places[0]
    for first, last in places[1:]:
        if first != end or last - begin > MOST:
            yield begin, end
            begin = first
        end = last
    yield begin, end
