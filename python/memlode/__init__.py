"""Every memory access of a recorded program, with its names and the cache level that answered; findings as tables."""

import memlode._native as _native
import memlode.parts as _parts

__version__ = _native.__version__

Error = _native.Error
NotMade = _native.NotMade
Trace = _native.Trace
Annotated = _native.Annotated
RecordBatch = _native.RecordBatch
ResultTable = _native.ResultTable
open = _native.open
machines = _native.machines

Task = _native.Task
Tables = _parts.Tables
Table = _parts.Table
plan = _parts.plan
run = _parts.run
hot_cold = _parts.hot_cold
finish = _parts.finish

__all__ = [
    "Annotated",
    "Error",
    "NotMade",
    "RecordBatch",
    "ResultTable",
    "Table",
    "Tables",
    "Task",
    "Trace",
    "finish",
    "hot_cold",
    "machines",
    "open",
    "plan",
    "run",
]
