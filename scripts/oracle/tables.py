"""Makes the small tables that the tests read, with the tools that people make tables with.

    python scripts/oracle/tables.py          (needs pandas, pyarrow and zstandard)

Every folder under crates/formats/tests/data/tables tells the same story in another dialect: four people, two
classes, three edges, and the features that `expected.json` lists.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

OUT = Path(__file__).resolve().parents[2] / "crates/formats/tests/data/tables"

PEOPLE = pd.DataFrame(
    {
        "id": [30, 10, 20, 40],
        "label": ["red", "blue", "red", "blue"],
        "split": ["train", "val", "test", "train"],
        "height": [1.5, 0.25, -3.0, 1e-7],
        "visits": np.array([0, 200, 7, 3], dtype=np.uint8),
        "member": [True, False, False, True],
        "town": ["Ulm", None, 'a "b", c', "Ulm"],
    }
)
EDGES = pd.DataFrame({"source": [10, 20, 30], "target": [20, 20, 40]})

# Columns in the order of the file; categories sorted; a missing town sets none of them.
EXPECTED = {
    "ids": ["30", "10", "20", "40"],
    "labels": ["red", "blue", "red", "blue"],
    "split": ["train", "val", "test", "train"],
    "feature_names": ["height", "visits", "member", "town=Ulm", 'town=a "b", c'],
    "features": [
        [1.5, 0, 1, 1, 0],
        [0.25, 200, 0, 0, 0],
        [-3.0, 7, 0, 0, 1],
        [float(np.float32(1e-7)), 3, 1, 1, 0],
    ],
    "edges": [["10", "20"], ["20", "20"], ["30", "40"]],
}


def folder(name):
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def parquet(name, nodes, edges, **options):
    for table, stem in [(nodes, "nodes"), (edges, "edges")]:
        if isinstance(table, pd.DataFrame):
            table = pa.Table.from_pandas(table, preserve_index=False)
        pq.write_table(table, folder(name) / f"{stem}.parquet", **options)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n")

    # pandas, as most people call it; an index that is left over from filtering becomes a column.
    filtered = PEOPLE.set_axis([3, 5, 8, 13])
    filtered.to_parquet(folder("pandas") / "nodes.parquet")
    EDGES.to_parquet(folder("pandas") / "edges.parquet", index=False)

    # Text columns that are pandas categories are dictionary columns in Parquet.
    categories = PEOPLE.astype({"town": "category", "label": "category", "split": "category"})
    parquet("categories", categories, EDGES)

    # Every codec.
    for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        parquet(f"codec-{codec}", PEOPLE, EDGES, compression=codec, store_schema=False)

    # The second page version with newer encodings, in several row groups.
    encodings = {"id": "DELTA_BINARY_PACKED", "town": "DELTA_BYTE_ARRAY", "height": "BYTE_STREAM_SPLIT"}
    nodes = pa.Table.from_pandas(PEOPLE, preserve_index=False)
    options = dict(data_page_version="2.0", use_dictionary=False, row_group_size=3, version="2.6")
    pq.write_table(nodes, folder("page-v2") / "nodes.parquet", column_encoding=encodings, **options)
    pq.write_table(pa.Table.from_pandas(EDGES, preserve_index=False), folder("page-v2") / "edges.parquet", **options)

    # Other widths of the same numbers; large strings; edges that call nodes by text.
    schema = {
        "id": pa.uint64(), "label": pa.large_string(), "split": pa.string(), "height": pa.float64(),
        "visits": pa.int16(), "member": pa.int8(), "town": pa.large_string(),
    }
    numbered = PEOPLE.astype({"member": "int8"})
    widths = pa.table({name: pa.array(numbered[name], from_pandas=True).cast(kind) for name, kind in schema.items()})
    parquet("widths", widths, EDGES.astype(str))

    # Folders of files that are one table, as Arrow, Dask and Spark write them; Spark marks a folder that is complete.
    for table, name in [(PEOPLE, "nodes"), (EDGES, "edges.parquet")]:
        table = pa.Table.from_pandas(table, preserve_index=False)
        options = dict(max_rows_per_file=2, max_rows_per_group=2, existing_data_behavior="delete_matching")
        ds.write_dataset(table, folder("parts") / name, format="parquet", **options)
        (OUT / "parts" / name / "_SUCCESS").touch()

    # CSV as pandas writes it.
    packings = {"csv": None, "csv.gz": {"method": "gzip", "mtime": 1}, "csv.zst": {"method": "zstd"}}
    for ending, packing in packings.items():
        for table, stem in [(PEOPLE, "nodes"), (EDGES, "edges")]:
            path = folder(ending.replace(".", "-")) / f"{stem}.{ending}"
            table.to_csv(path, index=False, compression=packing)
    # As a spreadsheet writes it: byte order mark, CRLF, every text quoted, other names of the edge columns.
    sheet = folder("spreadsheet")
    PEOPLE.to_csv(sheet / "nodes.csv", index=False, encoding="utf-8-sig", lineterminator="\r\n", quoting=2)
    EDGES.rename(columns={"source": "from", "target": "to"}).to_csv(
        sheet / "edges.csv", index=False, encoding="utf-8-sig", lineterminator="\r\n"
    )
    tabs = folder("tsv")
    PEOPLE.to_csv(tabs / "nodes.tsv", index=False, sep="\t")
    EDGES.to_csv(tabs / "edges.tsv", index=False, sep="\t")

    # Columns that cannot be features.
    bad = OUT / "refused"
    bad.mkdir(exist_ok=True)
    base = {"id": [1, 2], "label": ["a", "b"]}
    refused = {
        "nested": {"items": pa.array([[1], [2, 3]])},
        "struct": {"items": pa.array([{"x": 1}, {"x": 2}])},
        "dates": {"when": pa.array([0, 1], pa.timestamp("us"))},
        "decimals": {"price": pa.array([1, 2]).cast(pa.decimal128(21, 2))},
        "nan": {"x": [1.0, float("nan")]},
        "null": {"x": pa.array([1, None])},
    }
    for name, columns in refused.items():
        pq.write_table(pa.table({**base, **columns}), bad / f"{name}.parquet")
    pq.write_table(pa.table({"source": [1], "target": [2]}), bad / "edges.parquet")


if __name__ == "__main__":
    main()
