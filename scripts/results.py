"""Measures the tables of docs/results.md and docs/performance.md and writes them to docs/results/*.csv.

    python scripts/results.py --progap target/release/progap --data /path/to/data [NAME...]

Each file says which command made it, when, and with which build. Then
`PROGAP_RENEW=1 cargo test -p progap-cli --test reference` writes the pages. Only the standard library is needed.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
BERKELEY = "fb:Berkeley13"
RUNS = ["--repeats", "5"]


def row(name, *flags):
    """A row: its name, and what is added to the command of its table."""
    return name, list(flags)


EDGE_METHODS = ["progap-views", "progap-labels", "progap", "gap", "lpgnet", "edge-rand"]

# Of each table its file, title, the words that all its commands have in common, and its rows.
TABLES = {
    "accuracy-defaults": (
        "Berkeley13: the defaults of each level",
        ["train", BERKELEY, *RUNS],
        [
            row("none", "--level", "none"),
            row("edge; epsilon 1; one directed edge", "--level", "edge", "--epsilon", "1", "--directed"),
            row("edge; epsilon 1; one undirected edge", "--level", "edge", "--epsilon", "1"),
            row("node; epsilon 8; one node's record", "--level", "node", "--epsilon", "8"),
        ],
    ),
    "accuracy-methods-edge": (
        "Berkeley13, level edge, epsilon 1, one directed edge: methods",
        ["train", BERKELEY, "--level", "edge", "--epsilon", "1", "--directed", *RUNS],
        [row(method, "--method", method) for method in EDGE_METHODS],
    ),
    "accuracy-methods-node": (
        "Berkeley13, level node, epsilon 8: methods",
        ["train", BERKELEY, "--level", "node", "--epsilon", "8", *RUNS],
        [row(method, "--method", method) for method in ["progap-labels", "progap", "gap", "mlp", "dp-gnn"]],
    ),
    "accuracy-published": (
        "Berkeley13: settings as published, beside the authors' code (81.4, 72.3 and 63.7 on one split at depth 5)",
        ["train", BERKELEY, "--preset", "paper", "--depth", "5", *RUNS],
        [
            row("none", "--level", "none"),
            row("edge; epsilon 1", "--level", "edge", "--epsilon", "1"),
            row("node; epsilon 8", "--level", "node", "--epsilon", "8"),
        ],
    ),
    "performance-training": (
        "Training on Berkeley13, one thread: seconds of processor time, and peak memory in MB",
        ["train", BERKELEY, "--threads", "1"],
        [
            row("none", "--level", "none"),
            row("edge", "--level", "edge"),
            row("node", "--level", "node"),
            row("edge, as published, depth 5", "--preset", "paper", "--level", "edge", "--depth", "5"),
        ],
    ),
}


def measured(progap, words, data, folder):
    """What a run says of itself."""
    command = [progap, *words, "--json", "--out", str(folder / "r")]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PROGAP_DATA": str(data)})
    if run.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {run.stderr}")
    return json.loads(run.stdout)


def cells(name, said):
    """The figures of a row."""
    owner = said["owner"]
    if name.startswith("performance"):
        return {"cpu seconds": f"{owner['cpu_seconds']:.2f}", "peak MB": f"{owner['peak_rss_bytes'] / 1e6:.0f}"}
    found = said if "test_accuracy" in said else owner
    interval = found.get("test_accuracy_interval")
    shown = f"{100 * found['test_accuracy']:.1f}"
    if interval:
        shown += f" [{100 * interval[0]:.1f} to {100 * interval[1]:.1f}]"
    alone = found.get("features_only_accuracy")
    return {
        "method": said["method"],
        "accuracy (%)": shown,
        "features only (%)": f"{100 * alone:.1f}" if alone else "-",
    }


def write(name, asked):
    title, common, rows = TABLES[name]
    build = subprocess.run([asked.progap, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    commit = head.stdout.strip()
    table = []
    for told, flags in rows:
        with tempfile.TemporaryDirectory() as folder:
            said = measured(asked.progap, [*common, *flags], asked.data, pathlib.Path(folder))
        table.append({"run": told.replace(",", ";"), **cells(name, said), "flags": f"`{shlex.join(flags)}`"})
        print(name, table[-1], file=sys.stderr)
    facts = {
        "title": title,
        "command": f"progap {shlex.join(common)} FLAGS",
        "date": datetime.date.today(),
        "build": f"{build} ({commit})",
    }
    lines = [",".join(table[0])] + [",".join(line.values()) for line in table]
    file = ROOT / "docs/results" / f"{name}.csv"
    file.write_text("\n".join([*(f"# {key}: {fact}" for key, fact in facts.items()), *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--progap", default="target/release/progap")
    shared = pathlib.Path(os.environ.get("PROGAP_SHARED", "../shared"))
    parser.add_argument("--data", default=shared / "data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(TABLES)} [default: all]")
    asked = parser.parse_args()
    for name in asked.names or TABLES:
        write(name, asked)


if __name__ == "__main__":
    main()
