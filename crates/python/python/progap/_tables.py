"""Tables of pandas and polars, as the compiled part reads them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from ._errors import DataError

#: The usual names of a column of ids.
IDS = ("id", "node_id", "nodeid", "node")


def is_table(value: Any) -> bool:
    """Whether this is a table with named columns."""
    return hasattr(value, "columns") and (hasattr(value, "to_csv") or hasattr(value, "write_csv"))


def csv_of(table: Any, what: str, *, index: bool = False) -> bytes:
    """A table as text in memory, nothing of it on a disk. With ``index`` the labels of rows are its first column."""
    table = collected(table)
    if not hasattr(table, "columns"):
        raise DataError(f"{what} is a {type(table).__name__}; give a table of pandas or polars")
    if len(table.columns) == 0:
        raise DataError(f"the table of {what} has no columns")
    if hasattr(table, "write_csv"):
        nested = [name for name, kind in table.schema.items() if kind.is_nested()]
        if nested:
            held = f"the column {nested[0]!r} of {what} holds {table.schema[nested[0]]}"
            raise DataError(f"{held}; give one value for each row, or drop it")
        return table.write_csv().encode()
    text = io.StringIO()
    table.to_csv(text, index=index, **({"index_label": ""} if index else {}))
    return text.getvalue().encode()


def collected(table: Any) -> Any:
    """A table, also where it is one of polars that is lazy."""
    return table.collect() if hasattr(table, "collect") and hasattr(table, "collect_schema") else table


def library_of(table: Any) -> str | None:
    """The library of a table."""
    name = type(table).__module__.partition(".")[0]
    return name if name in ("pandas", "polars") else None


def later_rows(table: Any, id: str | None) -> tuple[bytes | Path, str]:
    """A table of nodes that come later as the compiled part takes it, and whether its rows go by "position" or by the
    number of their "row" in a file."""
    if isinstance(table, (str, os.PathLike)):
        return Path(table), "row"
    table = collected(table)
    if not is_table(table):
        known = "a table of pandas or polars, or a file (CSV or Parquet)"
        raise DataError(f"the table is a {type(table).__name__}; give {known}")
    named = id is not None or any(str(name).lower() in IDS for name in table.columns)
    if not named and hasattr(table, "write_csv"):
        table = table.with_row_index("id")
    return csv_of(table, "rows", index=not named and hasattr(table, "index")), "position"
