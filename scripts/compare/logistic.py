"""Beside scikit-learn: the features model and the default of `progap train`, against logistic regression on the same
splits.

    python scripts/compare/logistic.py --progap target/release/progap --labels 0.75 --splits 5 GRAPH.npz ...

A graph is an archive that `progap train` reads. Each split is drawn here and written into a copy of it, so that both
sides see the same nodes. Logistic regression has its strength and the scaling of rows chosen by validation accuracy.
Needs numpy, scipy and scikit-learn. Ends with an error if the features model is below logistic regression, or the
default below the better of it and label messages (`--method progap-labels --depth 2`), by more than --slack in the
mean.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize


def features_and_labels(archive):
    if "node_features" in archive:
        return sp.csr_matrix(archive["node_features"].astype(float)), archive["node_labels"]
    parts = (archive["x_data"].astype(float), archive["x_indices"], archive["x_indptr"])
    return sp.csr_matrix(parts, shape=tuple(archive["x_shape"])), archive["y"]


def draw(nodes, labels, validation, seed):
    order = np.random.default_rng(1000 + seed).permutation(nodes)
    train, val = round(labels * nodes), round(validation * nodes)
    return order[:train], order[train : train + val], order[train + val :]


def logistic_regression(x, y, train, val, test):
    best = None
    for rows in (x, normalize(x)):
        for strength in (0.1, 1, 10, 100):
            model = LogisticRegression(C=strength, max_iter=300).fit(rows[train], y[train])
            score = model.score(rows[val], y[val])
            if best is None or score > best[0]:
                best = (score, model.score(rows[test], y[test]))
    return 100 * best[1]


def ours(progap, file, folder, seed, flags):
    command = [progap, "train", file, "--seed", str(seed), "--json", "-o", folder, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    metrics = json.loads((pathlib.Path(folder) / "metrics.json").read_text())
    return 100 * metrics["test_accuracy"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("graphs", nargs="+", type=pathlib.Path)
    arguments.add_argument("--progap", default="target/release/progap")
    arguments.add_argument("--labels", type=float, default=0.75)
    arguments.add_argument("--validation", type=float, default=0.1)
    arguments.add_argument("--splits", type=int, default=5)
    arguments.add_argument("--epsilon", default="1")
    arguments.add_argument("--slack", type=float, default=0.3)
    asked = arguments.parse_args()
    print("| graph | logistic regression | label messages | features model | default |\n|---|---|---|---|---|")
    behind = []
    for graph in asked.graphs:
        archive = dict(np.load(graph, allow_pickle=False))
        x, y = features_and_labels(archive)
        figures = []
        for split in range(asked.splits):
            train, val, test = draw(len(y), asked.labels, asked.validation, split)
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / graph.name
                own = {name: values for name, values in archive.items() if "mask" not in name}
                for name, nodes in (("train_mask", train), ("val_mask", val), ("test_mask", test)):
                    own[name] = np.isin(np.arange(len(y)), nodes)
                np.savez(file, **own)
                alone = ours(asked.progap, file, f"{folder}/a", split, ["-m", "progap-views", "--depth", "0"])
                private = ["--directed", "--epsilon", asked.epsilon]
                labels = ours(
                    asked.progap, file, f"{folder}/l", split, ["-m", "progap-labels", "--depth", "2", *private]
                )
                default = ours(asked.progap, file, f"{folder}/d", split, private)
            figures.append((logistic_regression(x, y, train, val, test), labels, alone, default))
        theirs, labels, alone, default = np.mean(figures, axis=0)
        print(f"| {graph.stem} | {theirs:.1f} | {labels:.1f} | {alone:.1f} | {default:.1f} |", flush=True)
        enough = alone >= theirs - asked.slack and default >= max(theirs, labels) - asked.slack
        behind += [] if enough else [graph.stem]
    if behind:
        sys.exit(f"behind on {', '.join(behind)}")


if __name__ == "__main__":
    main()
