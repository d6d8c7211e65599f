"""Traces in Spark: tasks run on executors with the native engine, and hand back what they found. docs/spark.md.

Single accesses never go through the JVM, unless you ask for rows().
"""

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import memlode.parts as parts_of
from memlode.elsewhere import FarTask


def read(spark: SparkSession, path, *, machine: str = "generic", parts: int | None = None) -> "SparkTrace":
    """A trace whose analyses run on Spark's executors, which find it at the same path or address.

    There are as many parts as Spark has cores, unless `parts` says otherwise. The machine is one by name or file, for
    `host` may be another one on each executor.
    """
    return SparkTrace(spark, str(path), machine, parts or spark.sparkContext.defaultParallelism)


class SparkTrace:
    """A trace, and the DataFrames that are made of it."""

    def __init__(self, spark: SparkSession, path: str, machine: str, parts: int):
        self.spark, self.path, self.machine, self.parts = spark, path, machine, parts

    def run(self, analyses):
        """As memlode.run: tables of analyses by name, or what an analysis of your own finds."""
        return run_tasks(self.spark, parts_of.plan(self.path, analyses, self.parts, self.machine), self.path)

    def table(self, analysis: str, name: str) -> DataFrame:
        """A table of an analysis."""
        return self._frame(self.run(analysis)[name])

    def accesses_per_variable(self) -> DataFrame:
        """Accesses by variable or member, and by thread."""
        return self.table("accesses", "accesses_by_variable")

    def sources_of(self, variable: str) -> DataFrame:
        """The lines that access a variable, or a member as `type.member`, by their accesses."""
        rows = self.run("accesses")["accesses_by_line"].rows
        names = [{row["data"]["variable"], f"{row['data']['type']}.{row['data']['member']}"} for row in rows]
        kept = [row for row, known in zip(rows, names) if variable in known]
        return self._frame(parts_of.Table("sources_of", f"Sources of {variable}", kept))

    def offenders(self) -> DataFrame:
        """Variable and line by misses of each cache; one task, for caches depend on all that came before."""
        return self.table("accesses:misses=yes", "accesses_by_line")

    def shared(self) -> DataFrame:
        """Source lines of variables that threads share evenly, by the rule of the paper."""
        return self.table("shared:rule=source", "shared_source")

    def hot_cold(self) -> DataFrame:
        """Members of types with their shares of accesses and misses, hot or cold; one task, as for offenders."""
        (table,) = _returned(self.spark, [parts_of.HotCold(self.path, self.machine)])
        return self._frame(table)

    def reuse(self) -> DataFrame:
        """Reuse distances by data."""
        return self.table("reuse", "reuse_by_data")

    def kernels(self) -> tuple[DataFrame, DataFrame]:
        """Accesses per variable and shared variables, in one pass over the trace."""
        found = self.run(["accesses", "shared:rule=source"])
        return self._frame(found["accesses_by_variable"]), self._frame(found["shared_source"])

    def _frame(self, table: parts_of.Table) -> DataFrame:
        if not table.rows:
            return self.spark.createDataFrame([], StructType([]))
        rows = table.to_arrow()
        if hasattr(DataFrame, "toArrow"):
            return self.spark.createDataFrame(rows)
        # Before version 4, Spark takes no Arrow table.
        return self.spark.createDataFrame(rows.to_pylist(), from_arrow_schema(rows.schema))


def run_tasks(spark: SparkSession, tasks: list, path=None):
    """Runs the tasks of memlode.plan, each as one of Spark's, and puts together what they return."""
    return parts_of.finish(_returned(spark, tasks), path)


def _returned(spark: SparkSession, tasks: list) -> list:
    """What tasks return, each run as one of Spark's."""
    import pyarrow

    def run_some(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                # By value: the class of an analysis of one's own may be in a script.
                found = cloudpickle.dumps(tasks[number].run())
                yield pyarrow.RecordBatch.from_pydict({"found": pyarrow.array([found], pyarrow.binary())})

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    found = numbers.mapInArrow(run_some, "found binary").collect()
    return [cloudpickle.loads(bytes(row.found)) for row in found]


def rows(
    spark: SparkSession,
    path,
    *,
    misses_only: bool = False,
    columns: list[str] | None = None,
    cut: str = "stretches",
    machine: str = "generic",
    parts: int | None = None,
) -> DataFrame:
    """Annotated accesses as a DataFrame, as Arrow batches. docs/replay.md lists the columns.

    Each of the `stretches` replays what comes before it; `chunks` do not, and have neither levels, nor objects, nor
    numbers.
    """
    parts = parts or spark.sparkContext.defaultParallelism
    tasks = parts_of.plan_rows(str(path), cut, parts, machine)
    schema = _plain_schema(tasks[0], columns)

    def batches_of(numbers):
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for accesses in tasks[number].annotate(misses_only=misses_only):
                    yield _plain(accesses, schema)

    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(batches_of, from_arrow_schema(schema))


def _plain_schema(task, columns):
    """The columns wanted, in types that Spark has: text instead of dictionaries, and signed numbers."""
    import pyarrow

    known = task.schema() if isinstance(task, FarTask) else pyarrow.schema(task._columns())
    for name in columns or ():
        if name not in known.names:
            raise ValueError(f"there is no column `{name}`; there are {', '.join(known.names)}")
    fields = [known.field(name) for name in columns or known.names]
    return pyarrow.schema([pyarrow.field(field.name, _plain_type(field.type)) for field in fields])


def _plain_type(known):
    import pyarrow

    if pyarrow.types.is_dictionary(known):
        return _plain_type(known.value_type)
    wider = {pyarrow.uint8(): pyarrow.int16(), pyarrow.uint16(): pyarrow.int32(), pyarrow.uint32(): pyarrow.int64()}
    # Addresses of user space have no highest bit.
    return wider.get(known, pyarrow.int64() if known == pyarrow.uint64() else known)


def _plain(accesses, schema):
    import pyarrow

    batch = pyarrow.record_batch(accesses)
    columns = [batch.column(name).cast(field.type) for name, field in zip(schema.names, schema)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)
