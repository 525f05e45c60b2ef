"""Makes tables such as people have, trains on them at every level, and writes target/own-data.md.

    cargo build --release
    python scripts/own-data.py --progap target/release/progap

Needs numpy, pandas and scikit-learn. `--seeds` says how many tables of each kind; `--tables rare,dates` prints instead
of writing; `--keep FILE` remembers the tables that are done, for a run that is stopped; and `--units` prints what
becomes of one table whose columns are in other units.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

ROOT = Path(__file__).parents[1]
WORDS = (
    "amber birch cedar delta ember fjord grove heath inlet jetty "
    "knoll lagoon marsh north ocean pines quarry ridge stone thorn"
).split()


def graph(rng, labels, degree, homophily, centre=0):
    """Directed edges: a share `homophily` of them within a class."""
    sources = np.repeat(np.arange(len(labels)), rng.poisson(degree, len(labels)))
    members = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    same = rng.random(len(sources)) < homophily
    targets = rng.integers(0, len(labels), len(sources))
    targets[same] = [rng.choice(members[labels[s]]) for s in sources[same]]
    return pd.DataFrame({"source": sources, "target": targets})[sources != targets]


def both_ways(edges):
    back = edges.rename(columns={"source": "target", "target": "source"})
    return pd.concat([edges, back], ignore_index=True).drop_duplicates()


def numbers(rng, labels, columns, strength):
    """Gaussian columns whose means tell something of the class."""
    means = rng.normal(size=(labels.max() + 1, columns)) * strength
    return pd.DataFrame(
        means[labels] + rng.normal(size=(len(labels), columns)), columns=[f"x{c}" for c in range(columns)]
    )


def plain(rng, nodes=3000, classes=4, columns=6, strength=0.5, degree=5, homophily=0.6, shares=None):
    labels = rng.choice(classes, nodes, p=shares)
    labels[:classes] = range(classes)
    return labels, numbers(rng, labels, columns, strength), both_ways(graph(rng, labels, degree, homophily))


def rare(rng):
    """Fraud: 2 % of the nodes are in the class that matters."""
    return plain(rng, nodes=6000, classes=2, strength=1.0, shares=[0.98, 0.02], homophily=0.4)


def forty(rng):
    """40 classes."""
    return plain(rng, nodes=6000, classes=40, columns=24, strength=0.6)


def hundred(rng):
    """100 classes."""
    return plain(rng, nodes=8000, classes=100, columns=40, strength=0.6)


def raw_units(rng):
    """Columns in units of their own: an income, a share of millionths, a year, a log-normal price."""
    labels, x, edges = plain(rng)
    x["x0"] = 40_000 + 15_000 * x["x0"]
    x["x1"] = 1e-6 * x["x1"]
    x["x2"] = 1980 + (10 * x["x2"]).round()
    x["x3"] = np.exp(2 * x["x3"])
    return labels, x, edges


def missing(rng):
    """A third of all numbers is missing."""
    labels, x, edges = plain(rng)
    return labels, x.mask(rng.random(x.shape) < 1 / 3), edges


def dates(rng):
    """Dates and a category beside numbers."""
    labels, x, edges = plain(rng, columns=3)
    days = (900 + 300 * rng.normal(size=len(labels)) + 250 * labels).clip(0, 4000)
    x["joined"] = (pd.Timestamp("2012-01-01") + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d")
    towns = np.array(["Ayr", "Bath", "Cork", "Derby", "Ely"])
    x["town"] = towns[np.where(rng.random(len(labels)) < 0.5, labels, rng.integers(0, 5, len(labels)))]
    return labels, x, edges


def no_features(rng):
    """Nothing but the graph and labels."""
    labels, _, edges = plain(rng, degree=8)
    return labels, pd.DataFrame(index=range(len(labels))), edges


def few_labels(rng):
    """Labels of 5 % of the nodes, one in five of them for validation."""
    return plain(rng, nodes=6000)


def small(rng):
    """200 nodes."""
    return plain(rng, nodes=200, classes=3)


def directed(rng):
    """Citations: new nodes point to old ones, which point nowhere near them."""
    labels, x, edges = plain(rng)
    return labels, x, edges[edges["source"] > edges["target"]]


def bipartite(rng):
    """People and the things they buy: edges go from one kind to the other only."""
    labels, x, edges = plain(rng, degree=8)
    kind = np.arange(len(labels)) % 2
    x["kind"] = np.where(kind == 0, "person", "thing")
    return labels, x, edges[kind[edges["source"]] != kind[edges["target"]]]


def wide_text(rng):
    """A text of some words, which tell something of the class."""
    labels, x, edges = plain(rng, columns=2, strength=0.2)

    def sentence(label):
        own = rng.random(12) < 0.15
        places = np.where(own, 5 * label + rng.integers(0, 5, 12), rng.integers(0, 20, 12))
        return " ".join(WORDS[place] for place in places)

    x["text"] = [sentence(label) for label in labels]
    return labels, x, edges


def string_ids(rng):
    """Text for ids and classes."""
    return plain(rng)


TABLES = {
    table.__name__.replace("_", "-"): table
    for table in [
        rare, forty, hundred, raw_units, missing, dates, no_features, few_labels, small, directed, bipartite, wide_text,
        string_ids,
    ]
}  # fmt: skip
RARE = {"rare"}
OPTIONS = {"wide-text": ["--text", "text:64"]}


def split(rng, name, nodes):
    """75 % train, 10 % val, 15 % test; with few labels 4 %, 1 % and 45 %."""
    shares = [0.04, 0.01, 0.45, 0.5] if name == "few-labels" else [0.75, 0.1, 0.15, 0.0]
    return rng.choice(["train", "val", "test", ""], nodes, p=shares)


def write(folder, name, seed):
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    labels, features, edges = TABLES[name](rng)
    parts = split(rng, name, len(labels))
    ids = np.arange(len(labels)).astype(str)
    classes = labels.astype(str)
    if name == "string-ids":
        ids = np.array([f"user-{place:x}@example.org" for place in 7919 * np.arange(len(labels))])
        classes = np.array(["gold", "silver", "bronze", "none of these"])[labels]
    known = np.where(parts == "", "", classes)
    nodes = pd.DataFrame({"id": ids, "label": known}).join(features)
    nodes["split"] = parts
    nodes.to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"source": ids[edges["source"]], "target": ids[edges["target"]]}).to_csv(
        folder / "edges.csv", index=False
    )
    return parts


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def score(rare, accuracy, balanced):
    return 100 * (balanced if rare else accuracy)


def logistic_regression(folder, name, parts):
    """scikit-learn's on the features as progap prepared them at level none."""
    arrays = np.load(folder / PREPARED, allow_pickle=False)
    if "x" in arrays:
        x = np.array(arrays["x"], dtype=np.float64)
    else:
        offsets, indices = arrays["x_indptr"].astype(int), arrays["x_indices"]
        x = np.zeros([int(size) for size in arrays["x_shape"]])
        rows = np.repeat(np.arange(len(x)), np.diff(offsets))
        x[rows, indices] = arrays["x_data"] if "x_data" in arrays else 1
    y = arrays["y"]
    train, test = parts == "train", parts == "test"
    if x.shape[1] == 0 or np.ptp(x) == 0:
        most = np.bincount(y[train]).argmax()
        predicted = np.full(test.sum(), most)
    else:
        model = LogisticRegression(max_iter=2000, class_weight="balanced" if name in RARE else None)
        predicted = model.fit(x[train], y[train]).predict(x[test])
    return score(name in RARE, (predicted == y[test]).mean(), balanced_accuracy_score(y[test], predicted))


def train(progap, folder, name, seed, level, *options):
    out = folder / "release"
    weights = ["--class-weights", "balanced"] if name in RARE else []
    words = ["train", str(folder), "--seed", str(seed), "--level", level, "--json", "--out", str(out)]
    said = json.loads(run(progap, *words, *weights, *OPTIONS.get(name, []), *options))
    if level == "none":
        run(progap, "data", "convert", str(out / "nodes.progap"), str(folder / PREPARED))
    run("rm", "-r", str(out))
    scores = said.get("test_scores") or said["owner"]["test_scores"]
    return score(name in RARE, scores["accuracy"], scores["balanced_accuracy"])


PREPARED = "prepared.npz"
COLUMNS = {
    "logistic regression": None,
    "none": ("none", "--method", "progap-views"),
    "edge, eps 1": ("edge", "--method", "progap-views", "--epsilon", "1"),
    "edge, no graph": ("edge", "--method", "progap-views", "--depth", "0"),
    "node, eps 8": ("node", "--method", "progap-labels", "--epsilon", "8"),
    "node, no graph": ("node", "--method", "progap-labels", "--epsilon", "8", "--depth", "0"),
}


def measure(progap, name, seeds):
    rows = {column: [] for column in COLUMNS}
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / name
            folder.mkdir()
            parts = write(folder, name, seed)
            # Logistic regression reads what a run at level none has prepared.
            for column, how in sorted(COLUMNS.items(), key=lambda column: column[1] is None):
                try:
                    value = (
                        logistic_regression(folder, name, parts)
                        if how is None
                        else train(progap, folder, name, seed, *how)
                    )
                except RuntimeError as error:
                    print(error)
                    value = np.nan
                rows[column].append(value)
    means = {column: float(np.mean(values)) for column, values in rows.items()} | {"tables": seeds}
    print(name, {column: round(mean, 1) for column, mean in means.items()}, flush=True)
    return means


UNITS = {
    "as they are": lambda x: x,
    "times 1e-6": lambda x: 1e-6 * x,
    "times 1e6": lambda x: 1e6 * x,
    "plus 1e4": lambda x: x + 1e4,
    "log-normal": np.exp,
}


def units(progap, seeds):
    """The accuracy on one kind of table whose columns are all in another unit; at node level with public bounds, and
    without."""
    columns = ["none", "edge, eps 1", "node, eps 8, bounds", "node, eps 8"]
    lines = ["| columns | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, change in UNITS.items():
        found = []
        for seed in range(1, seeds + 1):
            rng = np.random.default_rng(seed)
            labels, x, edges = plain(rng)
            parts = rng.choice(["train", "val", "test"], len(labels), p=[0.75, 0.1, 0.15])
            # Bounds are what people know of a column beforehand: here four deviations around its mean, in its unit.
            bounds = [f"{c}={float(change(-4.0))!r}:{float(change(4.0))!r}" for c in x]
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place) / "units"
                folder.mkdir()
                nodes = pd.DataFrame({"id": range(len(labels)), "label": labels}).join(change(x))
                nodes.assign(split=parts).to_csv(folder / "nodes.csv", index=False)
                edges.to_csv(folder / "edges.csv", index=False)
                flags = [word for bound in bounds for word in ("--bounds", bound)]
                how = [
                    ("none",),
                    ("edge", "--epsilon", "1"),
                    ("node", "--epsilon", "8", *flags),
                    ("node", "--epsilon", "8"),
                ]
                found.append([train(progap, folder, "units", seed, *words) for words in how])
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in np.mean(found, axis=0)) + " |")
    return "\n".join(lines)


def misses(means):
    """How far a table falls short of what it has without the graph."""
    limits = [
        ("none", "logistic regression", 1.0),
        ("edge, eps 1", "edge, no graph", 2.0),
        ("node, eps 8", "node, no graph", 2.0),
    ]
    return [
        f"{of} {means[than] - means[of]:.1f} below {than}"
        for of, than, margin in limits
        if not means[of] >= means[than] - margin
    ]


def document(results):
    lines = [
        "# People's own tables",
        "",
        "Tables such as people have, made by `scripts/own-data.py`, and what comes of them with the methods "
        "`progap-views` (levels none and edge) and",
        "`progap` (level node): nothing is tuned, and no column is described but for the text of `wide-text` (`--text "
        "text:64`). Test accuracy in percent,",
        "over as many tables of a kind as the second column says, each with a split and noise of its own; for `rare` "
        "the balanced accuracy, with `--class-weights balanced`.",
        "Logistic regression is scikit-learn's (C = 1) on the features as they are prepared at level none, without "
        "the graph and without privacy;",
        "*no graph* is the same method with the same guarantee and `--depth 0`.",
        "",
        "| table | tables | what | " + " | ".join(COLUMNS) + " |",
        "|---|---|---|" + "---|" * len(COLUMNS),
    ]
    for name, means in results.items():
        what = TABLES[name].__doc__.strip().rstrip(".")
        lines.append(
            f"| {name} | {means['tables']} | {what} | " + " | ".join(f"{means[c]:.1f}" for c in COLUMNS) + " |"
        )
    missed = {name: misses(means) for name, means in results.items()}
    exceptions = [f"- `{name}`: {'; '.join(m)}" for name, m in missed.items() if m]
    lines += [
        "",
        "At level none no table is more than 1 point below logistic regression; at edge level (epsilon 1) and node "
        "level (epsilon 8) none is more than 2 points",
        "below the same method without the graph" + (", but for:" if exceptions else "."),
    ]
    if exceptions:
        lines += ["", *exceptions]
    lines += [
        "",
        "```sh",
        "python scripts/own-data.py --progap target/release/progap           # all tables, five of each",
        "python scripts/own-data.py --progap target/release/progap --units",
        "python scripts/calibration.py --progap target/release/progap GRAPHS...",
        "```",
        "",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progap", default=str(ROOT / "target/release/progap"))
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--keep", type=Path, help="a file of what is done, to go on from")
    args = parser.parse_args()
    if args.units:
        print(units(args.progap, args.seeds))
        return
    results = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    for name in args.tables.split(","):
        if name not in results:
            results[name] = measure(args.progap, name, args.seeds)
        if args.keep:
            args.keep.write_text(json.dumps(results))
    results = {name: results[name] for name in TABLES if name in results}
    text = document(results)
    if set(results) == set(TABLES):
        page = ROOT / "target/own-data.md"
        # What follows is measured by itself.
        _, mark, rest = page.read_text().partition("\n## Units")
        page.write_text(text + mark + rest)
    else:
        print(text)


if __name__ == "__main__":
    main()
