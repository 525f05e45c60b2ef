"""Arrays of whatever library, as NumPy arrays of the few types that the compiled part takes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ._errors import DataError


def as_array(value: Any, what: str) -> np.ndarray:
    """Anything that holds an array: NumPy, torch (also on a device), pandas, polars, lists."""
    if is_tensor(value):
        return tensor_array(value, what)
    if is_sparse(value):
        raise DataError(f"{what} is a sparse matrix; give an array")
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        # As gaps: NumPy itself would hand out what lies behind the mask.
        shown = value.data.astype(object)
        shown[np.ma.getmaskarray(value)] = None
        return shown
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise DataError(f"{what} is no array: {error}") from None


def aligned(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where its numbers lie between two words of memory, as in a view of bytes."""
    return array if array.flags.aligned else array.copy()


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch, without importing torch."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def tensor_array(tensor: Any, what: str) -> np.ndarray:
    """A tensor of torch as an array, wherever it lies and however it is stored; it shares memory where it can."""
    try:
        tensor = tensor.detach().cpu()
        if is_sparse_tensor(tensor):
            tensor = tensor.to_dense()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        return tensor.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise DataError(
            f"{what} is a tensor that NumPy cannot read ({str(error).splitlines()[0]}); give one of plain numbers"
        ) from None


def is_sparse_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch in any of its sparse layouts."""
    return is_tensor(value) and "sparse" in str(getattr(value, "layout", ""))


def is_sparse(value: Any) -> bool:
    """Whether this is a matrix or array of scipy.sparse, without importing SciPy."""
    return hasattr(value, "tocsr") and hasattr(value, "nnz") and hasattr(value, "shape")


def whole_numbers(array: np.ndarray, what: str) -> np.ndarray:
    """Whole numbers as 32 or 64 bit; floats that are whole numbers pass."""
    if array.dtype in (np.int64, np.int32):
        return aligned(array)
    if array.dtype.kind in "iu":
        return signed(array, what, "number of a node")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            fits = np.isfinite(array) & (np.abs(array) < 2.0**53)
            whole = fits & (array == np.floor(array))
        if whole.all():
            return array.astype(np.int64)
        at = int(np.flatnonzero(~whole.ravel())[0])
        raise DataError(f"{what} holds {array.ravel()[at]}, which is no whole number; nodes are counted from 0")
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    raise DataError(f"{what} holds {array.dtype}; give whole numbers: nodes are counted from 0")


def signed(array: np.ndarray, what: str, meant: str) -> np.ndarray:
    """Whole numbers as 64 bit with a sign; those that do not fit would become others."""
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise DataError(f"{what} holds {int(array.max())}, which is too large for a {meant}")
    return aligned(array.astype(np.int64, copy=False))


def edges(edge_index: Any, adjacency: Any) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Senders, receivers and, where an adjacency matrix says it, the number of nodes."""
    if adjacency is None and (is_sparse(edge_index) or is_sparse_tensor(edge_index)):
        edge_index, adjacency = None, edge_index
    if adjacency is not None:
        if edge_index is not None:
            raise DataError("give edges once: as edge_index, or as an adjacency matrix")
        return adjacency_edges(adjacency)
    if edge_index is None:
        empty = np.zeros(0, np.int64)
        return empty, empty, None
    if is_frame(edge_index):
        # Columns, not the two rows of an array.
        array = edge_index.to_numpy().T
    elif isinstance(edge_index, tuple) and len(edge_index) == 2:
        first, second = (as_array(part, "edge_index") for part in edge_index)
        if first.shape != second.shape or first.ndim != 1:
            raise DataError(
                f"edge_index has {first.shape} senders and {second.shape} receivers; give two lists of the same length"
            )
        return whole_numbers(first, "edge_index[0]"), whole_numbers(second, "edge_index[1]"), None
    else:
        array = as_array(edge_index, "edge_index")
    if array.size == 0:
        empty = np.zeros(0, np.int64)
        return empty, empty, None
    if array.ndim != 2:
        raise DataError(f"edge_index has the shape {array.shape}; give 2 x E: senders in row 0, receivers in row 1")
    if array.shape[0] != 2:
        if array.shape[1] != 2:
            raise DataError(f"edge_index has the shape {array.shape}; give 2 x E: senders in row 0, receivers in row 1")
        array = array.T
    array = whole_numbers(array, "edge_index")
    return array[0], array[1], None


def weight_bound(bound: Any) -> float:
    """The public maximum of weights, which is declared: the largest weight is that of one edge."""
    if bound is None:
        raise DataError(
            "weights need a public maximum, which they are divided by: give weight_bound= (1 if they are from 0 to "
            "1); larger weights are clamped to it"
        )
    return float(bound)


def edge_weights(weights: Any, edges: int, bound: Any) -> tuple[np.ndarray, float] | None:
    """One weight for each edge, where there are some, and their public maximum."""
    if weights is None:
        return None
    array = numbers(as_array(weights, "edge_weight"), "edge_weight")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (edges,):
        raise DataError(
            f"edge_weight has the shape {array.shape} and there are {edges} edges; give one number for each edge"
        )
    return array.astype(np.float64), weight_bound(bound)


def adjacency_edges(adjacency: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """The edges of an adjacency matrix: row = sender, column = receiver, 0 = no edge."""
    if is_sparse_tensor(adjacency) and adjacency.ndim == 2 and adjacency.shape[0] == adjacency.shape[1]:
        listed = adjacency.detach().cpu().to_sparse_coo().coalesce()
        row, column = (
            part[tensor_array(listed.values() != 0, "adjacency")]
            for part in tensor_array(listed.indices(), "adjacency")
        )
        return row, column, int(adjacency.shape[0])
    if not is_sparse(adjacency):
        dense = as_array(adjacency, "adjacency")
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
            raise DataError(f"the adjacency matrix has the shape {dense.shape}; give a square one")
        check_entries(dense)
        rows, columns = np.nonzero(dense)
        return rows.astype(np.int64), columns.astype(np.int64), dense.shape[0]
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise DataError(f"the adjacency matrix has the shape {adjacency.shape}; give a square one")
    matrix = adjacency.tocoo()
    check_entries(matrix.data)
    there = matrix.data != 0
    row, column = matrix.row, matrix.col
    if not there.all():
        row, column = row[there], column[there]
    return whole_numbers(row, "adjacency"), whole_numbers(column, "adjacency"), adjacency.shape[0]


def check_entries(entries: np.ndarray) -> None:
    """Entries of an adjacency matrix are numbers; all but 0 are edges, NaN too, as an edge decides nothing."""
    numbers(entries, "the adjacency matrix")


def is_frame(value: Any) -> bool:
    """Whether this is a table with named columns: pandas or polars."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy") and hasattr(value, "shape")


def features(x: Any) -> tuple[Any, int | None, list[str]]:
    """Features as the compiled part takes them, the number of rows, and the names of columns where they have some."""
    if x is None:
        return None, None, []
    if is_sparse(x):
        if len(x.shape) != 2:
            raise DataError(f"x has the shape {x.shape}; give one row for each node")
        rows = x.tocsr()
        if not rows.has_canonical_format:
            # Entries that stand twice are one, their sum; on a copy, as the matrix is not ours.
            rows = rows.copy()
            rows.sum_duplicates()
        values = numbers(np.asarray(rows.data), "x").astype(np.float32, copy=False)
        return (
            (whole_numbers(rows.indptr, "x"), whole_numbers(rows.indices, "x"), values, int(x.shape[1])),
            x.shape[0],
            [],
        )
    names = [str(name) for name in x.columns] if is_frame(x) else []
    array = as_array(x, "x")
    if array.ndim == 1 and array.size:
        raise DataError(f"x has the shape {array.shape}; give one row for each node, such as x.reshape(-1, 1)")
    if array.ndim == 1:
        array = array.reshape(0, 0)
    if array.ndim != 2:
        raise DataError(f"x has the shape {array.shape}; give one row for each node")
    array = numbers(array, "x")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    return array, array.shape[0], names


def numbers(array: np.ndarray, what: str) -> np.ndarray:
    """Real numbers, truth values among them."""
    if array.dtype.kind in "fiub":
        return aligned(array)
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (ValueError, TypeError):
            pass
    elif array.size == 0:
        return array.astype(np.float32)
    raise DataError(
        f"{what} holds {array.dtype}; give numbers, or use progap.from_pandas for tables with names, dates and gaps"
    )


def labels(y: Any, class_names: Any) -> tuple[np.ndarray, np.ndarray]:
    """The class of each node by number (-1 where it is missing), and the classes as users know them."""
    if class_names is not None:
        class_names = [str(name) for name in class_names]
        twice = [name for at, name in enumerate(class_names) if name in class_names[:at]]
        if twice:
            raise DataError(f"the class name {twice[0]!r} stands twice; give each class a name of its own")
    array = as_array(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"y has the shape {array.shape}; give one label for each node")
    if array.dtype.kind in "US" or array.dtype.kind == "O" or array.dtype.name in ("string", "str", "category"):
        return text_labels(array, class_names)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        whole = np.where(missing, -1, array)
        if not np.isfinite(whole).all() or (whole != np.floor(whole)).any():
            wrong = array[~(np.isfinite(whole) & (whole == np.floor(whole)))][0]
            raise DataError(
                f"y holds {wrong}: labels are classes (whole numbers or text; missing: NaN, None or -1), not "
                f"measurements"
            )
        array = whole.astype(np.int64)
    elif array.dtype.kind not in "iu":
        raise DataError(f"y holds {array.dtype}; give whole numbers or text (missing: NaN, None or -1)")
    array = signed(array, "y", "label")
    if array.size and array.min() < -1:
        at = int(np.flatnonzero(array < -1)[0])
        raise DataError(
            f"node {at}: the label {array[at]} is negative (-1 is a missing label); correct the label, or drop the node"
        )
    if class_names is not None:
        known = np.asarray(class_names, dtype=object)
        if array.size and array.max() >= len(known):
            at = int(np.flatnonzero(array >= len(known))[0])
            raise DataError(f"node {at}: the label {array[at]} is outside 0..{len(known)}, the list of class names")
        return array, known
    classes, codes = np.unique(array[array >= 0], return_inverse=True)
    numbered = np.full(array.shape, -1, np.int64)
    numbered[array >= 0] = codes
    return numbered, classes


def text_labels(array: np.ndarray, class_names: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels of text, or of mixed objects: each value by its text, None and NaN missing."""
    values = array.tolist()
    missing = np.array(
        [value is None or value != value or str(value) == "" or str(value) == "<NA>" for value in values], bool
    )
    known = [value for value, gone in zip(values, missing) if not gone]
    if known and all(isinstance(value, (int, float, np.integer, np.floating, np.bool_)) for value in known):
        return labels(np.array([np.nan if gone else float(value) for value, gone in zip(values, missing)]), class_names)
    texts = np.array(
        [
            "" if gone else (value.decode() if isinstance(value, bytes) else str(value))
            for value, gone in zip(values, missing)
        ],
        dtype=object,
    )
    names = sorted(set(texts[~missing])) if class_names is None else class_names
    codes = {name: code for code, name in enumerate(names)}
    unknown = [text for text in texts[~missing] if text not in codes]
    if unknown:
        raise DataError(f"the label {unknown[0]!r} is none of the class names")
    numbered = np.array([-1 if gone else codes[text] for text, gone in zip(texts, missing)], np.int64).reshape(
        len(values)
    )
    return numbered, np.array(names, dtype=object)


def parts(nodes: int, train: Any, val: Any, test: Any) -> np.ndarray | None:
    """Masks, or lists of nodes, as the part of each node: 1 train, 2 val, 3 test, 0 none."""
    given = {"train_mask": train, "val_mask": val, "test_mask": test}
    if all(value is None for value in given.values()):
        return None
    if train is None:
        raise DataError("val_mask or test_mask is given without train_mask: say which nodes train")
    codes = np.zeros(nodes, np.uint8)
    for code, (what, value) in enumerate(given.items(), 1):
        if value is None:
            continue
        chosen = chosen_nodes(as_array(value, what), nodes, what)
        twice = chosen & (codes != 0)
        if twice.any():
            raise DataError(
                f"node {int(np.flatnonzero(twice)[0])}: the node is in more than one mask; correct it and try again"
            )
        codes[chosen] = code
    if val is None and test is None:
        # What does not train is there to be compared with.
        codes[codes == 0] = 3
    return codes


def seed(value: Any) -> int:
    """A seed, as the compiled part takes it."""
    number = operator.index(value)
    if not 0 <= number < 2**64:
        raise DataError(f"the seed {number} is outside 0..2**64")
    return number


def chosen_nodes(array: np.ndarray, nodes: int, what: str) -> np.ndarray:
    """A mask, from a mask or from a list of nodes."""
    if array.dtype == object and array.size and all(isinstance(value, (bool, np.bool_)) for value in array.ravel()):
        array = array.astype(bool)
    if array.ndim != 1:
        raise DataError(f"{what} has the shape {array.shape}; give one truth value for each node, or a list of nodes")
    if array.dtype.kind == "b":
        if len(array) != nodes:
            raise DataError(f"{what} has length {len(array)}, expected {nodes}; give one truth value for each node")
        return array
    array = whole_numbers(array, what)
    if array.size and (array.min() < 0 or array.max() >= nodes):
        wrong = array[(array < 0) | (array >= nodes)][0]
        raise DataError(f"{what}: the index {wrong} is outside 0..{nodes}; indices count nodes from 0")
    if len(array) == nodes and nodes > 2 and array.size and array.max() <= 1:
        return array.astype(bool)
    mask = np.zeros(nodes, bool)
    mask[array] = True
    return mask
