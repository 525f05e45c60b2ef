"""What SciPy finds in Facebook100 files, for comparison with our own reader.

    python scripts/oracle/facebook100.py FOLDER_OF_SCHOOLS

writes crates/formats/tests/data/facebook100/: small files made by scipy.io.savemat, and schools.json with
counts and checksums of real schools (not the schools themselves).
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

TARGET = Path(__file__).parents[2] / "crates/formats/tests/data/facebook100"
SCHOOLS = ["Reed98", "Berkeley13", "Cornell5", "Northeastern19", "UChicago30"]
ATTRIBUTES = ["status", "gender", "major", "minor", "dorm", "year"]


def small_school():
    """Thirty people; one entry is 2, one is an explicit zero, one person has an edge to themselves."""
    random = np.random.default_rng(7)
    upper = np.triu(random.random((30, 30)) < 0.2, 1)
    dense = (upper | upper.T).astype(float)
    dense[3, 3] = 1
    matrix = scipy.sparse.csc_matrix(dense)
    matrix.data[5] = 2
    matrix.data[9] = 0
    info = random.integers(0, 4, (30, 7)).astype(np.uint16)
    info[:, 5] = random.choice([0, 2006, 2007], 30)
    return matrix, info


def edge_checksums(matrix):
    """Over edges row -> column: count, sum and xor of a mixing hash modulo 2^64."""
    entries = matrix.tocoo()
    kept = entries.data != 0
    keys = entries.row[kept].astype(np.uint64) * np.uint64(1 << 32) + entries.col[kept].astype(np.uint64)
    mixed = keys * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return {
        "edges": int(kept.sum()),
        "sum": str(int(np.add.reduce(mixed, dtype=np.uint64))),
        "xor": str(int(np.bitwise_xor.reduce(mixed))),
    }


def describe(file):
    content = scipy.io.loadmat(file)
    info = content["local_info"].astype(np.int64)
    facts = {"nodes": int(info.shape[0]), **edge_checksums(content["A"])}
    weights = np.arange(1, info.shape[0] + 1)
    facts["attributes"] = {
        name: str(int((info[:, at] * weights).sum())) for at, name in enumerate(ATTRIBUTES)
    }
    return facts


def prepared(file):
    """Counts after the recipe for one school: people with a year, frequent years, no isolated nodes."""
    content = scipy.io.loadmat(file)
    info, matrix = content["local_info"].astype(np.int64), content["A"].tocsr()
    columns = sum(len(set(info[:, at][info[:, at] > 0])) for at in range(5))
    years, counts = np.unique(info[:, 5][info[:, 5] > 0], return_counts=True)
    frequent = years[counts >= 1000]
    if len(frequent) == 0:
        return None
    kept = np.isin(info[:, 5], frequent)
    matrix = matrix[kept][:, kept]
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    connected = np.diff(matrix.indptr) > 0
    classes = {str(year): int(count) for year, count in zip(*np.unique(info[kept, 5][connected], return_counts=True))}
    return {
        "nodes": int(connected.sum()),
        "edges": int(matrix.nnz),
        "features": columns,
        "classes": classes,
    }


def all_schools(folder, clean):
    """Counts after the recipe for all schools that are there, as published or clean."""
    infos, matrices = [], []
    for file in sorted(folder.glob("*.mat")):
        content = scipy.io.loadmat(file)
        infos.append(content["local_info"].astype(np.int64))
        matrices.append(content["A"].tocsr().astype(bool))
    info = np.concatenate(infos)
    columns = sum(len(set(info[:, at][info[:, at] > 0])) for at in range(3))
    year = info[:, 5]
    labelled = year > 0 if clean else year > year.min()
    years, counts = np.unique(year[labelled], return_counts=True)
    frequent = years[counts >= 1000 * len(infos)]
    kept = np.isin(year, frequent) & labelled
    nodes, edges, start = 0, 0, 0
    for matrix in matrices:
        inside = kept[start : start + matrix.shape[0]]
        start += matrix.shape[0]
        part = matrix[inside][:, inside]
        nodes += int((np.diff(part.indptr) > 0).sum())
        edges += part.nnz
    return {
        "schools": len(infos),
        "nodes": nodes,
        "edges": edges,
        "features": columns,
        "classes": [str(value) if value else "missing" for value in frequent.tolist()],
    }


def main():
    folder = Path(sys.argv[1])
    TARGET.mkdir(parents=True, exist_ok=True)
    matrix, info = small_school()
    content = {"note": "made by scipy", "A": matrix, "local_info": info}
    scipy.io.savemat(TARGET / "compressed.mat", content, do_compression=True)
    scipy.io.savemat(TARGET / "plain.mat", content, do_compression=False)
    facts = {
        "small": describe(TARGET / "plain.mat"),
        "schools": {
            name: {**describe(folder / f"{name}.mat"), "prepared": prepared(folder / f"{name}.mat")}
            for name in SCHOOLS
        },
        "all_as_published": all_schools(folder, clean=False),
        "all_clean": all_schools(folder, clean=True),
    }
    (TARGET / "schools.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
