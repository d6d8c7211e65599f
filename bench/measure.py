"""Runs a program and writes what it cost, as the kernel counted it: measure.py OUT PROGRAM ARGS…

OUT becomes JSON with cpu_s (user and system time of the program and the children it waited for), wall_s
and status. The program's standard output is discarded. Alone in a file so that it can stand between
`memlode run` and the program: the collector's own time is then not in the figures.
"""

import json
import os
import sys
import time


def measure(command):
    """Cost of one run of `command`."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"measure.py: {command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    _, status, usage = os.wait4(pid, 0)
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - start,
        "status": os.waitstatus_to_exitcode(status),
    }


if __name__ == "__main__":
    result = measure(sys.argv[2:])
    with open(sys.argv[1], "w") as out:
        json.dump(result, out)
    sys.exit(result["status"] if result["status"] >= 0 else 128 - result["status"])
