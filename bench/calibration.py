"""How well a machine's calibration repeats: `memlode machine calibrate` again and again.

    python3 bench/calibration.py [--quick] [--runs N]

  median     of what was measured in the runs that trusted it
  between    interquartile range between these runs, over the median
  within     median of the spreads that the runs themselves give
  trusted    part of the runs that trusted it; in the others it stayed assumed

`host` stays what it is. Nothing else should run meanwhile. Writes target/bench/calibration.json.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"


def calibrate(folder):
    """What one run measured: constants by name."""
    command = [MEMLODE, "machine", "calibrate", "--json", "-o", pathlib.Path(folder) / "machine.toml"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {constant["name"]: constant for constant in json.loads(done.stdout)["constants"]}


def repeats(name, runs):
    """How one constant repeats."""
    found = [run[name] for run in runs if name in run]
    trusted = [constant["value"] for constant in found if constant["kept"] is None]
    row = {"median": None, "between": None, "trusted": len(trusted) / len(runs)}
    row["within"] = statistics.median(constant["spread"] for constant in found)
    if len(trusted) > 1:
        low, row["median"], high = statistics.quantiles(trusted, n=4, method="inclusive")
        row["between"] = (high - low) / row["median"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="five runs")
    parser.add_argument("--runs", type=int, default=25, help="calibrations")
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        runs = [calibrate(folder) for _ in range(5 if options.quick else max(options.runs, 2))]
    constants = {name: repeats(name, runs) for name in dict.fromkeys(name for run in runs for name in run)}
    found = {
        "date": datetime.date.today().isoformat(),
        "load": {"before": load, "after": os.getloadavg()},
        "runs": len(runs),
        "constants": constants,
    }
    out = ROOT / "target" / "bench" / "calibration.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{'constant':20} {'median':>8} {'between':>8} {'within':>7} {'trusted':>8}")
    for name, row in constants.items():
        median = "–" if row["median"] is None else f"{row['median']:.4g}"
        between = "–" if row["between"] is None else f"{row['between']:.0%}"
        print(f"{name:20} {median:>8} {between:>8} {row['within']:>7.0%} {row['trusted']:>8.0%}")
    print(f"\n{len(runs)} runs; {out} written")


if __name__ == "__main__":
    main()
