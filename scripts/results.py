"""Measures the tables of docs/results.md and docs/performance.md, and writes them to docs/results/*.csv.

    python scripts/results.py --progap target/release/progap --data /path/to/data [NAME...]

Each file says which command made it, when, and with which build. The name `chart` draws docs/accuracy.svg. Then
`PROGAP_RENEW=1 cargo test -p progap-cli --test reference` writes the pages. Only the standard library is needed; all
of it takes a few minutes of processor time.
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
RUNS = ["--repeats", "5", "--seed", "1"]


def row(name, *flags):
    """A row: its name, and what is added to the command of its table."""
    return name, list(flags)


EDGE_METHODS = ["progap-views", "progap-labels", "progap", "gap", "lpgnet", "edge-rand"]
NODE_METHODS = ["progap-views", "progap-labels", "progap", "gap", "mlp", "dp-gnn"]

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
        [row(method, "--method", method) for method in NODE_METHODS],
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
        ["train", BERKELEY, "--seed", "1", "--threads", "1"],
        [
            row("none", "--level", "none"),
            row("edge", "--level", "edge"),
            row("node", "--level", "node"),
            row("edge; as published; depth 5", "--preset", "paper", "--level", "edge", "--depth", "5"),
        ],
    ),
}


# The figure of the first page: a command that writes it, and the name under which it does.
CHART = [
    *["experiment", "tradeoff", "--data-sets", BERKELEY, "--levels", "edge", "--preset", "both", "--runs", "5"],
    *["--methods", "progap-views,progap-labels,progap,gap", "--epsilons", "0.25,0.5,1,2,4"],
]


def run(asked, words):
    """What a command prints. It ends this program where it fails."""
    command = [asked.progap, *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PROGAP_DATA": str(asked.data)})
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.stderr}")
    return done.stdout


def cells(name, said):
    """The figures of a row."""
    owner = said["owner"]
    if name.startswith("performance"):
        return {"CPU seconds": f"{owner['cpu_seconds']:.2f}", "peak MB": f"{owner['peak_rss_bytes'] / 1e6:.0f}"}
    runs = [{**one["owner"], **one} for one in said["runs"]]
    found = [one["test_accuracy"] for one in runs]
    shown = f"{percent(sum(found) / len(found))} [{percent(min(found))} to {percent(max(found))}]"
    alone = [one["features_only_accuracy"] for one in runs if one.get("features_only_accuracy")]
    figures = {"accuracy (%)": shown, "features only (%)": percent(sum(alone) / len(alone)) if alone else "-"}
    # Rows that are methods say which in their name.
    return figures if name.startswith("accuracy-methods") else {"method": said["method"], **figures}


def percent(share):
    return f"{100 * share:.1f}"


def build_of(asked):
    """The version of the command, and the commit that it was built from, if that is what is checked out."""
    version = run(asked, ["--version"]).split()[-1]
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return f"{version} ({commit.stdout.strip() or 'no commit'})"


def write(name, asked):
    """Makes a table, of which nothing is kept unless all of its rows were made."""
    title, common, rows = TABLES[name]
    table = []
    for told, flags in rows:
        with tempfile.TemporaryDirectory() as folder:
            said = json.loads(run(asked, [*common, *flags, "--json", "--out", f"{folder}/r"]))
        table.append({"run": told, **cells(name, said), "flags": f"`{shlex.join(flags)}`"})
        print(name, table[-1], file=sys.stderr)
    facts = {
        "title": title,
        "command": f"progap {shlex.join(common)} FLAGS",
        "date": datetime.date.today(),
        "build": build_of(asked),
    }
    lines = [",".join(table[0])] + [",".join(line.values()) for line in table]
    file = ROOT / "docs/results" / f"{name}.csv"
    file.write_text("\n".join([*(f"# {key}: {fact}" for key, fact in facts.items()), *lines]) + "\n")


def draw(asked):
    """Makes the chart of the first page."""
    with tempfile.TemporaryDirectory() as folder:
        run(asked, [*CHART, "--quiet", "--out", f"{folder}/c"])
        figures = list(pathlib.Path(folder, "c/figures").glob("*.svg"))
        if len(figures) != 1:
            sys.exit(f"one figure was expected: {[figure.name for figure in figures]}")
        (ROOT / "docs/accuracy.svg").write_bytes(figures[0].read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--progap", default="target/release/progap")
    shared = pathlib.Path(os.environ.get("PROGAP_SHARED", "../shared"))
    parser.add_argument("--data", default=shared / "data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of chart, {', '.join(TABLES)} [default: all]")
    asked = parser.parse_args()
    names = asked.names or ["chart", *TABLES]
    if unknown := [name for name in names if name not in ["chart", *TABLES]]:
        sys.exit(f"there is no table {', '.join(unknown)}")
    for name in names:
        draw(asked) if name == "chart" else write(name, asked)


if __name__ == "__main__":
    main()
