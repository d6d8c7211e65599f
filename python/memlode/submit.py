"""`memlode spark submit`: spark-submit, with this package for the executors. docs/spark.md."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import memlode._native as _native

# The folder that executors unpack the package to, in their working directory.
THERE = "memlode-package"

# Options of spark-submit that have no value; every other one has.
FLAGS = {"-h", "--help", "-v", "--verbose", "--version", "--supervise"}

CONF, ARCHIVES = ("-c", "--conf"), "--archives"
PYTHON_PATH, MASTER = "spark.executorEnv.PYTHONPATH", "spark.master="


def submit(words: list[str], is_printed: bool) -> int:
    """Runs spark-submit with these words, or prints its command line; returns its exit status."""
    spark_submit = found()
    with tempfile.TemporaryDirectory(prefix="memlode-") as folder:
        archive = Path(folder, f"memlode-{_native.__version__}.zip")
        command = [str(spark_submit), *with_package(words, archive)]
        if is_printed:
            print(shlex.join(command))
            return 0
        pack(Path(__file__).parent, archive)
        status = subprocess.run(command, env=environment(words, spark_submit)).returncode
        # As shells have it: 128 and the signal.
        return 128 - status if status < 0 else status


def found() -> Path:
    """spark-submit: that of SPARK_HOME, of this Python's pyspark, or on the path."""
    if home := os.environ.get("SPARK_HOME"):
        named = Path(home, "bin", "spark-submit")
        if not named.is_file():
            raise _native.Error(f"SPARK_HOME is {home}, where there is no bin/spark-submit: correct or unset it")
        return named
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark and pyspark.origin:
        installed = Path(pyspark.origin).parent / "bin" / "spark-submit"
        if installed.is_file():
            return installed
    if on_path := shutil.which("spark-submit"):
        # Where a link leads: Spark is around its script.
        return Path(on_path).resolve()
    raise _native.Error(
        f"there is no spark-submit: set SPARK_HOME to a Spark, or {sys.executable} -m pip install pyspark"
    )


def options_of(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Options in front of the script, each with its value; and the script with its arguments."""
    options, rest = [], list(words)
    while rest and rest[0].startswith("-"):
        name, is_joined, value = rest.pop(0).partition("=")
        if name not in FLAGS and not is_joined:
            if not rest:
                raise _native.Error(f"{name} of spark-submit has no value")
            value = rest.pop(0)
        options.append((name, value))
    if not rest and not {name for name, _ in options} & {"-h", "--help", "--version"}:
        raise _native.Error("there is no script to submit: memlode spark submit [OPTIONS OF SPARK-SUBMIT] SCRIPT")
    return options, rest


def with_package(words: list[str], archive: Path) -> list[str]:
    """The words, and behind their options those that bring the archive to the executors.

    Of an option that is there twice, spark-submit takes the last, so that ours have the values of those before.
    """
    options, script = options_of(words)
    archives = [value for name, value in options if name == ARCHIVES][-1:]
    properties = [value.partition("=") for name, value in options if name in CONF]
    paths = [value for name, _, value in properties if name == PYTHON_PATH][-1:]
    ours = [ARCHIVES, ",".join([*archives, f"{archive}#{THERE}"])]
    ours += ["--conf", f"{PYTHON_PATH}={os.pathsep.join([THERE, *paths])}"]
    return [*words[: len(words) - len(script)], *ours, *script]


def environment(words: list[str], spark_submit: Path) -> dict[str, str]:
    """The environment of spark-submit: its driver is this Python, and so are workers on this machine."""
    mine = dict(os.environ, SPARK_HOME=str(spark_submit.parents[1]))
    mine.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    options, _ = options_of(words)
    named = [value for name, value in options if name == "--master"]
    properties = [value for name, value in options if name in CONF and value.startswith(MASTER)]
    # As spark-submit has it, which takes no property where the option is there.
    master = named[-1] if named else properties[-1].removeprefix(MASTER) if properties else "local"
    if master.startswith("local"):
        mine.setdefault("PYSPARK_PYTHON", sys.executable)
    return mine


def pack(package: Path, archive: Path) -> None:
    """Packs a package that is installed, with its native code: nothing is compiled on executors."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, Path(package.name, file.relative_to(package)))
