"""ProGAP: train node classifiers on sensitive graphs, with a differential-privacy guarantee you can show to anyone.

>>> import progap
>>> g = progap.load("demo")                                    # or progap.Graph(x=..., edge_index=..., y=...), from_pandas, ...
>>> model = progap.ProGAP(level="edge", epsilon=1.0).fit(g)
>>> model.guarantee_.unit, model.guarantee_.epsilon <= 1.0
('edge-undirected', True)
>>> classes = model.predict()                                  # of every node, without further cost

``Graph``, ``load`` and ``from_...`` bring data in. ``ProGAP`` trains on it, with every method and level of the command. ``Release`` opens
what was saved, verifies it and predicts. ``accounting`` is the accountant alone.
"""

from . import accounting
from ._budget import spent
from ._errors import (
    BudgetWarning,
    DataError,
    LedgerError,
    NotPrivateWarning,
    PrivacyError,
    ProGAPError,
    ReleaseError,
    SettingsError,
    Stopped,
)
from ._estimator import ProGAP, resume
from ._graph import Graph
from ._guarantee import Guarantee
from ._progap import VERSION as __version__
from ._progap import Event, Progress
from ._release import Finding, Release
from ._sources import from_networkx, from_pandas, from_polars, from_pyg, load

__all__ = [
    "BudgetWarning",
    "DataError",
    "Event",
    "Finding",
    "Graph",
    "Guarantee",
    "LedgerError",
    "NotPrivateWarning",
    "PrivacyError",
    "ProGAP",
    "ProGAPError",
    "Progress",
    "Release",
    "ReleaseError",
    "SettingsError",
    "Stopped",
    "__version__",
    "accounting",
    "from_networkx",
    "from_pandas",
    "from_polars",
    "from_pyg",
    "load",
    "resume",
    "spent",
]

for _thing in (Graph, Guarantee, ProGAP, Release, Finding, load, resume, spent, from_networkx, from_pandas, from_polars, from_pyg):
    _thing.__module__ = "progap"
del _thing
