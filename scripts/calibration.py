"""Calibration errors at edge level, epsilon 1, over five random splits of each graph.

    python scripts/calibration.py --progap target/release/progap GRAPHS...

Needs numpy. Binned errors are never below zero, so even probabilities that are exactly right have one, the larger the
fewer nodes there are. Beside each error stands the mean error of such probabilities: the same ones, with hits drawn
from them. The error of one split is compared with that, and the error is also measured on the test nodes of all splits
together.
"""

import argparse
import csv
import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np

BINS = 10


def error(confidence, right):
    """The mean distance between how sure predictions are and how often they are right, in bins of equal width."""
    bins = np.clip(np.ceil(confidence * BINS), 1, BINS)
    return sum(abs((confidence - right)[bins == k].sum()) for k in range(1, BINS + 1)) / len(right)


def error_if_right(confidence, draws=1000):
    """The mean error if a prediction were right as often as it is sure, and the error below which 95 % of such draws
    are."""
    chance = np.random.default_rng(1)
    errors = [error(confidence, (chance.random(len(confidence)) < confidence).astype(float)) for _ in range(draws)]
    return np.mean(errors), np.quantile(errors, 0.95)


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def one_split(progap, graph, seed, options):
    with tempfile.TemporaryDirectory() as place:
        arrays, release = Path(place) / "graph.npz", Path(place) / "release"
        split = ["--resplit", "--seed", str(seed)]
        run(progap, "data", "convert", graph, str(arrays), *split)
        run(progap, "train", graph, *split, "--level", "edge", "--epsilon", "1", "--out", str(release), *options)
        header, *rows = csv.reader(io.StringIO(run(progap, "predict", str(release))))
        data = np.load(arrays)
    test, labels = data["test_mask"], data["y"]
    names = (
        [str(name) for name in data["class_names"]]
        if "class_names" in data
        else [str(c) for c in range(labels.max() + 1)]
    )
    of_class, columns = header.index("class"), [at for at, name in enumerate(header) if name.startswith("p(")]
    confidence = np.array([max(float(row[at]) for at in columns) for row in rows])
    right = np.array([row[of_class] == names[label] for row, label in zip(rows, labels)], dtype=float)
    return confidence[test], right[test]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progap", default=str(Path(__file__).parents[1] / "target/release/progap"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("graphs", nargs="+")
    args = parser.parse_args()
    print(
        "| graph | test nodes | accuracy | one split | if exactly right (95 % below) | all splits together | if "
        "exactly right |\n|---|---|---|---|---|---|---|"
    )
    for graph in args.graphs:
        splits = [one_split(args.progap, graph, seed, []) for seed in range(1, args.seeds + 1)]
        confidence, right = (np.concatenate(part) for part in zip(*splits))
        one, below = np.mean([error_if_right(confidence) for confidence, _ in splits], axis=0)
        percent = [
            right.mean(),
            np.mean([error(*split) for split in splits]),
            one,
            below,
            error(confidence, right),
            error_if_right(confidence)[0],
        ]
        accuracy, measured, one, below, together, all_right = (f"{100 * value:.1f}" for value in percent)
        print(
            f"| {Path(graph).stem} | {len(splits[0][1])} | {accuracy} | {measured} | {one} ({below}) | {together} | "
            f"{all_right} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
