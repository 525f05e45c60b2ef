"""Whatever is given, the answer is a graph or an exception of ours, and the interpreter lives."""

import numpy as np
import pytest

import progap

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.unicode_string_dtypes(max_len=3),
    hnp.byte_string_dtypes(max_len=3),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
SMALL = hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(0, 8)), elements=st.integers(-2, 7))
VALUES = st.one_of(
    st.none(),
    ARRAYS,
    ARRAYS.map(lambda a: a.T),
    ARRAYS.map(lambda a: a[..., ::2] if a.ndim else a),
    st.text(max_size=3),
    st.integers(),
    st.floats(),
    st.lists(st.one_of(st.none(), st.integers(-2, 9), st.floats(), st.text(max_size=2)), max_size=6),
    st.binary(max_size=4),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=2),
)
EXPECTED = (progap.ProGAPError, TypeError, ValueError)
MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(x=VALUES, edge_index=VALUES | SMALL, y=VALUES, masks=st.lists(VALUES, min_size=3, max_size=3), ids=VALUES)
def test_any_objects(x, edge_index, y, masks, ids):
    try:
        graph = progap.Graph(x, edge_index, y, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2], node_ids=ids)
    except EXPECTED:
        return
    assert graph.num_nodes == len(graph.y) and graph.edge_index.shape == (2, graph.num_edges)


@MANY
@given(
    nodes=st.integers(1, 6),
    edge_index=SMALL,
    data=st.data(),
)
def test_nearly_good_arrays(nodes, edge_index, data):
    x = data.draw(hnp.arrays(np.float64, (nodes, data.draw(st.integers(0, 3)))))
    y = data.draw(hnp.arrays(np.int8, nodes, elements=st.integers(-2, 3)))
    inside = edge_index.size == 0 or (edge_index.min() >= 0 and edge_index.max() < nodes)
    good = inside and y.min() >= -1 and y.max() >= 0
    try:
        graph = progap.Graph(x, edge_index, y, train_mask=np.ones(nodes, bool))
    except progap.DataError:
        assert not good
        return
    assert good
    if not np.isnan(x).any():  # those are missing values, with a column that says so
        largest = float(np.finfo(np.float32).max)
        np.testing.assert_array_equal(graph.x, np.clip(x, -largest, largest).astype(np.float32).reshape(nodes, -1))
    try:
        progap.ProGAP(method="progap-labels", level="none", epochs=1, random_state=0).fit(graph).predict()
    except progap.ProGAPError:
        pass


STEPS = st.sampled_from([1, 1, 1, 2, -1])


@MANY
@given(nodes=st.integers(1, 5), columns=st.integers(1, 4), steps=st.tuples(STEPS, STEPS), data=st.data())
def test_read_only_arrays_of_any_layout(nodes, columns, steps, data):
    """Lent or copied, it is the same graph as that of a fresh copy."""
    kind = data.draw(st.sampled_from([np.float32, np.float32, np.float64]))
    finite = st.floats(-4, 4, width=16)
    base = data.draw(hnp.arrays(kind, (nodes * abs(steps[0]), columns * abs(steps[1])), elements=finite))
    base = np.asfortranarray(base) if data.draw(st.booleans()) else base
    base.setflags(write=data.draw(st.booleans()))
    x = base[:: steps[0], :: steps[1]]
    x.setflags(write=False)
    rest = {"y": np.arange(nodes) % 2, "train_mask": np.ones(nodes, bool)}
    graph, copy = progap.Graph(x, **rest), progap.Graph(np.array(x), **rest)
    kept = x.astype(np.float32)
    lends = kind == np.float32 and x.flags.c_contiguous and not base.flags.writeable
    assert graph._data.lent == lends and copy._data.lent == 0
    assert graph.fingerprint() == copy.fingerprint()
    if base.flags.writeable:
        base[:] = 9
    np.testing.assert_array_equal(graph.x, kept)


@MANY
@given(
    indptr=st.lists(st.integers(-1, 6), min_size=4, max_size=4),
    indices=st.lists(st.integers(-2, 5), max_size=6),
    data=st.data(),
)
def test_any_read_only_sparse_rows(indptr, indices, data):
    """SciPy looks at none of this where it is told that all is well."""
    sparse = pytest.importorskip("scipy.sparse")
    values = data.draw(hnp.arrays(np.float32, len(indices)))
    rows = sparse.csr_array((3, 4), dtype=np.float32)
    rows.data, rows.indices, rows.indptr = values, np.array(indices, np.int32), np.array(indptr, np.int32)
    for part in (rows.data, rows.indices):
        part.setflags(write=False)
    rows.has_canonical_format = True
    try:
        graph = progap.Graph(rows, y=[0, 1, 0], train_mask=[0, 1])
    except progap.DataError:
        return
    assert indptr == sorted(indptr) and all(0 <= index < 4 for index in indices) and graph.x.shape == (3, 4)


@MANY
@given(parameters=st.dictionaries(st.sampled_from(sorted(progap.ProGAP().get_params())), VALUES, max_size=3))
def test_any_parameters(parameters):
    try:
        progap.ProGAP(**parameters).settings()
    except EXPECTED:
        pass


@pytest.fixture(scope="module")
def model(graph):
    return progap.ProGAP(method="progap-labels", level="none", epochs=1, random_state=0).fit(graph)


@MANY
@given(nodes=VALUES | st.lists(st.integers(-2, 310)), y=VALUES)
def test_any_questions_to_a_model(model, nodes, y):
    for ask in (
        model.predict,
        model.predict_proba,
        lambda nodes: model.to_frame(nodes, library="pandas"),
        model.score,
        lambda nodes: model.score(nodes, y),
    ):
        try:
            ask(nodes)
        except EXPECTED:
            pass


@MANY
@given(nodes=VALUES | st.lists(st.integers(-2, 310)), y=VALUES)
def test_any_folds(graph, nodes, y):
    """What scikit-learn's tools hand over, and what they never would."""
    try:
        progap.ProGAP(graph=graph, method="progap-labels", level="none", epochs=1).fit(nodes, y)
    except EXPECTED:
        pass


NUMBERS = st.one_of(
    st.floats(), st.integers(), st.sampled_from([0, 1, -1, 1e-300, 1e300, 2**63, 2**64, None, "1", True])
)


@MANY
@given(
    numbers=st.lists(NUMBERS, min_size=5, max_size=5),
    count=st.integers(-1, 2**70),
    text=st.text(max_size=20) | st.binary(max_size=9),
)
def test_any_events(numbers, count, text):
    one, two, three, epsilon, delta = numbers
    for ask in (
        lambda: progap.Event.gaussian(one, two),
        lambda: progap.Event.laplace(one, two),
        lambda: progap.Event.randomized_response(one, two),
        lambda: progap.Event.gaussian(1.0).poisson_sampled(one).repeated(count),
        lambda: progap.Event.gaussian(1.0).with_noise_times(one) * count,
        lambda: progap.Event.gaussian(1.0).selected(one, two),
        lambda: progap.Event.sampled_without_replacement(count, 1, 1, one, two),
        lambda: progap.Event.composed([one]),
        lambda: progap.Event.from_json(text),
        lambda: progap.accounting.epsilon(progap.Event.gaussian(2.0), delta=delta),
        lambda: progap.accounting.delta(progap.Event.gaussian(2.0), epsilon=epsilon),
        lambda: progap.accounting.epsilon(progap.Event.gaussian(2.0), delta=1e-6, accountant=text),
    ):
        try:
            ask()
        except (*EXPECTED, OverflowError):
            pass


CELLS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=4),
    st.booleans(),
    st.dates(),
    st.sampled_from(["0", "1", "a", 'a,"b\n']),
)


@MANY
@given(data=st.data())
def test_any_tables(data):
    pandas = pytest.importorskip("pandas")

    def table(names, rows):
        return pandas.DataFrame({name: data.draw(st.lists(CELLS, min_size=rows, max_size=rows)) for name in names})

    extra = data.draw(st.lists(st.text(max_size=3), max_size=2, unique=True))
    nodes, edges = (
        table(["id", "label", *extra], data.draw(st.integers(0, 4))),
        table(["source", "target"], data.draw(st.integers(0, 3))),
    )
    try:
        graph = progap.from_pandas(nodes, edges, id="id", label="label", source="source", target="target")
    except EXPECTED:
        return
    assert graph.num_nodes == len(nodes)
