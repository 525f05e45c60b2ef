"""Kinds of graphs, made here, and what each way to train makes of them: a table of test accuracies in percent, or AUROC
for rare classes.

    python scripts/compare/kinds.py --level edge --epsilon 4 --splits 2 [--kind sum ...] [--other base=/path/to/progap] [--real other/minesweeper.npz]

A class follows from the features of neighbours (sum, mean, max, two-hops, product, one-of-ten, band), from the node's
own row in a way that is not linear (xor, rings, amounts, hours, thresholds, missing, categories, three-of-thirty) among
neighbours who are alike, or from the graph itself (degree, community, cycle, fraud). Columns: ours; other builds;
`--preset paper` at depths 1, 2 and 5; `gap`; `sage` where the level has it; scikit-learn's histogram boosting on the
features alone. The last column is ours less the best of the others that are published. Needs NumPy and scikit-learn.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile
import threading

import numpy as np

PARTNERS = 5


def partners(rng, nodes, count):
    """Random partners, both directions."""
    source = np.repeat(np.arange(nodes), count)
    target = rng.integers(0, nodes, nodes * count)
    keep = source != target
    return both_ways(source[keep], target[keep])


def both_ways(source, target):
    pairs = np.unique(np.stack([np.minimum(source, target), np.maximum(source, target)]), axis=1)
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def alike(rng, labels, count, share=2 / 3):
    """Neighbours of the same class in that share of the edges, else anyone."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 2))
    source = np.repeat(np.arange(len(labels)), count)
    own = labels[source]
    inside = order[(starts[own] + rng.random(len(source)) * (starts[own + 1] - starts[own])).astype(int)]
    target = np.where(rng.random(len(source)) < share, inside, rng.integers(0, len(labels), len(source)))
    keep = source != target
    return both_ways(source[keep], target[keep])


def total(edges, values):
    """The sum over senders."""
    return np.bincount(edges[1], weights=values[edges[0]], minlength=len(values))


def split_in(values, count=2):
    """Classes of equal size."""
    return np.searchsorted(np.quantile(values, np.arange(1, count) / count), values)


def of_neighbours(kind, rng, nodes, count):
    columns = 10 if kind == "one-of-ten" else 3
    x, edges = rng.normal(size=(nodes, columns)), partners(rng, nodes, count)
    noise = 0.5 * rng.normal(size=nodes)
    degree = np.maximum(total(edges, np.ones(nodes)), 1)
    first = total(edges, x[:, 0])
    if kind == "sum":
        y = first + noise > 0
    elif kind == "mean":
        y = first / degree + noise / np.sqrt(2 * count) > 0
    elif kind == "max":
        largest = np.full(nodes, -9.0)
        np.maximum.at(largest, edges[1], x[edges[0], 0])
        y = split_in(largest + 0.2 * noise)
    elif kind == "two-hops":
        y = x[:, 0] * np.sqrt(2 * count) + total(edges, first) / np.sqrt(2 * count) + noise > 0
    elif kind == "product":
        y = x[:, 1] * first + noise > 0
    elif kind == "band":
        y = np.abs(first) + noise > 0.67 * np.sqrt(2 * count)
    else:
        y = total(edges, x[:, 7]) + noise > 0
    return x, y.astype(int), edges


def of_rows(kind, rng, nodes, _):
    x = rng.normal(size=(nodes, 6))
    if kind == "xor":
        y = (x[:, 0] > 0) != (x[:, 1] > 0)
    elif kind == "rings":
        y = split_in(x[:, 0] ** 2 + x[:, 1] ** 2 + 0.05 * x[:, 5], 3)
    elif kind == "amounts":
        amounts = np.exp(1.5 * x)
        y = split_in(amounts[:, 0] * amounts[:, 1] + amounts[:, 2] * amounts[:, 3], 3)
        x = amounts
    elif kind == "hours":
        hour = rng.uniform(0, 24, nodes)
        y = np.sin(hour * 2 * np.pi / 8) + 0.4 * x[:, 1] > 0
        x[:, 0] = hour
    elif kind == "thresholds":
        y = (x[:, 0] > 0.4).astype(int) + (x[:, 1] < -0.3) + (x[:, 2] > 0.1) + (rng.random(nodes) < 0.05)
        y = y % 3
    elif kind == "missing":
        gone = rng.random(nodes) < 0.3
        y = np.where(gone, x[:, 1] > 0, x[:, 0] > 0) ^ (rng.random(nodes) < 0.05)
        x[gone, 0] = np.nan
    elif kind == "categories":
        category = rng.integers(0, 4, nodes)
        y = x[:, 0] * np.array([2, -2, 1, -1])[category] + 0.5 * x[:, 1] > 0
        x = np.concatenate([x[:, :3], np.eye(4)[category]], axis=1)
    else:
        x = rng.normal(size=(nodes, 30))
        y = x[:, 3] * x[:, 11] + (x[:, 20] > 0.5) + 0.3 * rng.normal(size=nodes) > 0.3
    y = np.asarray(y).astype(int)
    return x, y, alike(rng, y, 4)


def of_graphs(kind, rng, nodes, count):
    x = rng.normal(size=(nodes, 3))
    if kind == "degree":
        weight = rng.pareto(2, nodes) + 0.3
        source = rng.choice(nodes, 5 * nodes, p=weight / weight.sum())
        edges = both_ways(source, rng.integers(0, nodes, 5 * nodes))
        return x, split_in(total(edges, np.ones(nodes)) + 0.01 * rng.random(nodes), 3), edges
    if kind == "community":
        y = rng.integers(0, 5, nodes)
        return x, y, alike(rng, y, 8, 0.7)
    if kind == "cycle":
        y = rng.integers(0, 4, nodes)
        x[:, 0] += 0.7 * (y % 2)
        x[:, 1] += 0.7 * (y // 2)
        order = np.argsort(y, kind="stable")
        starts = np.searchsorted(y[order], np.arange(6))
        source = np.repeat(np.arange(nodes), 6)
        follow = (y[source] + 1) % 4
        inside = order[(starts[follow] + rng.random(len(source)) * (starts[follow + 1] - starts[follow])).astype(int)]
        target = np.where(rng.random(len(source)) < 0.8, inside, rng.integers(0, nodes, len(source)))
        keep = source != target
        return x, y, np.unique(np.stack([source[keep], target[keep]]), axis=1)
    # Five in a hundred are paid through mules, whose amounts are large.
    fraud = rng.random(nodes) < 0.05
    mule = ~fraud & (rng.random(nodes) < 0.1)
    amount = np.exp(rng.normal(size=nodes) + 1.5 * mule)
    source = np.repeat(np.arange(nodes), count)
    mules = np.flatnonzero(mule)
    to_mule = fraud[source] & (rng.random(len(source)) < 0.5)
    target = np.where(to_mule, rng.choice(mules, len(source)), rng.integers(0, nodes, len(source)))
    keep = source != target
    x = np.stack([amount, np.exp(rng.normal(size=nodes)), rng.normal(size=nodes) + 0.3 * fraud], axis=1)
    return x, fraud.astype(int), both_ways(source[keep], target[keep])


KINDS = {
    **dict.fromkeys(["sum", "mean", "max", "two-hops", "product", "one-of-ten", "band"], of_neighbours),
    **dict.fromkeys(
        ["xor", "rings", "amounts", "hours", "thresholds", "missing", "categories", "three-of-thirty"], of_rows
    ),
    **dict.fromkeys(["degree", "community", "cycle", "fraud"], of_graphs),
}


def made(kind, nodes, count, split, folder):
    """A graph of a kind as a file, and its rows, labels and training and test nodes."""
    rng = np.random.default_rng([split, *map(ord, kind)])
    x, y, edges = KINDS[kind](kind, rng, nodes, count)
    part = rng.permutation(nodes) / nodes
    masks = {"train_mask": part < 0.75, "val_mask": (part >= 0.75) & (part < 0.85), "test_mask": part >= 0.85}
    file = pathlib.Path(folder, f"{kind}-{nodes}-{count}-{split}.npz")
    np.savez(file, x=x.astype(np.float32), y=y, edge_index=edges, **masks)
    return file, x, y, masks


def boosting(x, y, masks):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    known = masks["train_mask"] | masks["val_mask"]
    model = HistGradientBoostingClassifier(random_state=0).fit(x[known], y[known])
    test = masks["test_mask"]
    if is_rare(y):
        return 100 * roc_auc_score(y[test], model.predict_proba(x[test])[:, 1])
    return 100 * model.score(x[test], y[test])


def is_rare(y):
    return np.bincount(y).min() < 0.1 * len(y)


def run(progap, file, flags, rare):
    """The test accuracy of a run in percent, or its AUROC."""
    command = [progap, "train", str(file), *shlex.split(flags), "--json", "--quiet", "--threads", "1"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-o", f"{folder}/r"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip()
    found = json.loads(done.stdout)
    return find(found, "auroc" if rare else "test_accuracy") * 100, find(found, "cpu_seconds")


def find(found, name):
    """The first value of a name, in a summary of any depth."""
    if isinstance(found, dict):
        if isinstance(found.get(name), (int, float)):
            return found[name]
        inside = [value for value in (find(part, name) for part in found.values()) if value is not None]
        return inside[0] if inside else None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progap", default="target/release/progap")
    parser.add_argument("--other", action="append", default=[], metavar="NAME=BINARY")
    parser.add_argument("--level", default="none", choices=["none", "edge", "node"])
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--real", action="append", default=[], help="a file of a real graph, its first mask")
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--partners", type=int, default=PARTNERS)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--ours-only", action="store_true", help="ours and the other builds alone")
    asked = parser.parse_args()
    level = f"--level {asked.level}" + (f" --epsilon {asked.epsilon:g}" if asked.epsilon else "")
    ways = {"ours": (asked.progap, "")}
    ways |= {name: (path, "") for name, path in (other.split("=", 1) for other in asked.other)}
    if not asked.ours_only:
        for depth in [1, 2, 5]:
            ways[f"paper {depth}"] = (asked.progap, f"--preset paper --depth {depth}")
        ways["gap"] = (asked.progap, "--method gap")
        if asked.level == "none":
            ways["sage"] = (asked.progap, "--method sage")
    names = [*ways, *([] if asked.ours_only else ["boosting"])]
    kinds = asked.kind or ([] if asked.real else list(KINDS))
    print("| graph | " + " | ".join(names) + " | ours less best | CPU-s |")
    print("|---" * (len(names) + 3) + "|")
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for kind in [*kinds, *asked.real]:
            found = {name: [] for name in names}
            seconds, why = [], []

            def one(name, file, extra, rare, seed):
                binary, flags = ways[name]
                value, more = run(binary, file, f"{level} {flags} {extra} --seed {seed}", rare)
                with lock:
                    if value is None:
                        why.append(f"{name}: {more}")
                        return
                    found[name].append(value)
                    if name == "ours":
                        seconds.append(more or 0)

            jobs = []
            for split in range(1, asked.splits + 1):
                if kind in KINDS:
                    file, x, y, masks = made(kind, asked.nodes, asked.partners, split, folder)
                    extra, rare = "", is_rare(y)
                else:
                    arrays = np.load(kind)
                    file, extra = kind, f"--mask {split - 1}"
                    x = arrays[next(name for name in ["node_features", "x"] if name in arrays)]
                    y = arrays[next(name for name in ["node_labels", "y"] if name in arrays)]
                    masks = {f"{p}_mask": arrays[f"{p}_masks"][split - 1] for p in ["train", "val", "test"]}
                    rare = False
                if "boosting" in found:
                    found["boosting"].append(boosting(x, y, masks))
                jobs += [pool.submit(one, name, file, extra, rare, split) for name in ways]
            for job in jobs:
                job.result()
            means = {name: statistics.mean(values) if values else float("nan") for name, values in found.items()}
            others = [means[name] for name in names if name != "ours" and found[name] and not name.startswith("base")]
            least = f"{means['ours'] - max(others):+.1f}" if others else ""
            cells = " | ".join(f"{means[name]:.1f}" for name in names)
            name = pathlib.Path(kind).stem
            print(f"| {name} | {cells} | {least} | {statistics.mean(seconds) if seconds else 0:.1f} |", flush=True)
            for text in why:
                print("   ", text[:300], flush=True)


if __name__ == "__main__":
    main()
