"""Ways to train, side by side on the same splits: a table of mean test accuracies.

    python scripts/compare/ways.py --labels 0.05 --splits 5 --flags "--epsilon 1 --directed" \\
        --way "label messages=-m progap-labels --depth 2" --way "default=" facebook100/Cornell5.mat other/cora.npz

A graph is a file that `progap train` reads; `Cornell5.mat:gender` chooses the label, and `chameleon.npz@masks` the
file's own splits. Split `s` is drawn with the seed `s`. Validation nodes are --validation of all nodes (--divide: a
fifth of the labelled ones, so that nothing else is labelled), and all others are test nodes. Finished runs are kept in
--store: the same command goes on where it stopped, and a run is known by its flags, so delete the store of another
build. Needs nothing but Python.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--progap", default="target/release/progap")
    parser.add_argument("--way", action="append", required=True, metavar="NAME=FLAGS")
    parser.add_argument("--flags", default="", help="flags of every way")
    parser.add_argument("--labels", type=float, default=0.75, help="share of training nodes")
    parser.add_argument("--validation", type=float, help="share of validation nodes [0.1, and 0.05 at 1 %% labels]")
    parser.add_argument("--divide", action="store_true", help="a fifth of --labels is for validation")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=pathlib.Path)
    return parser.parse_args()


def split_flags(asked, graph, seed):
    """The graph's own flags and those of its split."""
    if graph.endswith("@masks"):
        return [graph.removesuffix("@masks"), "--mask", str(seed - 1), "--seed", str(seed)]
    file, _, label = graph.partition(":")
    train = 0.8 * asked.labels if asked.divide else asked.labels
    validation = asked.validation if asked.validation is not None else 0.05 if asked.labels <= 0.02 else 0.1
    validation = 0.2 * asked.labels if asked.divide else validation
    ratios = f"{validation:.4f},{1 - train - validation:.4f}"
    return [file, *(["--label", label] if label else []), "--resplit", "--ratios", ratios, "--seed", str(seed)]


def run(progap, flags):
    """The test accuracy in percent, and the seconds of CPU time; None and the reason where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        command = [progap, "train", *flags, "--threads", "1", "--quiet", "-o", f"{folder}/release"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"accuracy": None, "why": done.stderr.strip()}
        # At node level accuracies are for the data owner alone, in a folder of their own.
        (file,) = pathlib.Path(folder, "release").glob("**/metrics.json")
        return {"accuracy": 100 * json.loads(file.read_text())["test_accuracy"]}


def main():
    asked = arguments()
    ways = [way.partition("=")[::2] for way in asked.way]
    known = {}
    if asked.store and asked.store.exists():
        known = {tuple(line["flags"]): line for line in map(json.loads, asked.store.read_text().splitlines())}
    lock = threading.Lock()

    def figure(flags):
        if tuple(flags) not in known:
            found = {"flags": flags, **run(asked.progap, flags)}
            with lock:
                known[tuple(flags)] = found
                if asked.store:
                    with asked.store.open("a") as store:
                        store.write(json.dumps(found) + "\n")
        return known[tuple(flags)]

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        print(f"| graph | {' | '.join(name for name, _ in ways)} |\n|---|{'---|' * len(ways)}")
        means = []
        rows = []
        for graph in asked.graphs:
            seeds = range(1, asked.splits + 1)
            lists = [
                [split_flags(asked, graph, seed) + shlex.split(asked.flags) + shlex.split(flags) for seed in seeds]
                for _, flags in ways
            ]
            rows.append((graph, [[pool.submit(figure, flags) for flags in runs] for runs in lists]))
        for graph, row in rows:
            found = [[run.result() for run in runs] for runs in row]
            for why in {run["why"] for runs in found for run in runs if run["accuracy"] is None}:
                print(f"{graph}: {why}", file=sys.stderr)
            mean = [
                statistics.fmean(run["accuracy"] for run in runs)
                if all(run["accuracy"] is not None for run in runs)
                else math.nan
                for runs in found
            ]
            means.append(mean)
            name = pathlib.Path(graph.partition(":")[0]).stem.removesuffix(".npz") + (
                f", {graph.partition(':')[2]}" if ":" in graph else ""
            )
            print(f"| {name} | {' | '.join(f'{value:.1f}' for value in mean)} |", flush=True)
        if len(means) > 1:
            whole = [mean for mean in means if not any(map(math.isnan, mean))]
            print(
                f"| mean of {len(whole)} | {' | '.join(f'{statistics.fmean(column):.1f}' for column in zip(*whole))} |"
            )


if __name__ == "__main__":
    main()
