"""ProGAP: train node classifiers on sensitive graphs, with a differential-privacy guarantee you can show to anyone.

>>> import progap
>>> g = progap.load("demo")                                    # or Graph(x=..., edge_index=..., y=...), from_pandas
>>> model = progap.ProGAP(level="edge", epsilon=1.0).fit(g)
>>> model.guarantee_.unit, model.guarantee_.epsilon <= 1.0
('edge-undirected', True)
>>> classes = model.predict()                                  # of every node, without further cost

``Graph``, ``load`` and ``from_...`` bring data in. ``ProGAP`` trains on it, with every method and level of the command.
``Release`` opens what was saved, verifies it and predicts. ``accounting`` is the accountant alone. ``Ledger`` keeps the
budget of data over many runs; ``audit`` attacks a guarantee, ``report`` makes a page of a release, and ``experiment``
compares.
"""

from . import accounting
from ._budget import spent
from ._errors import (
    AudienceWarning,
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
from ._ledger import Ledger
from ._progap import VERSION as __version__
from ._progap import Event, Key, Progress
from ._release import Export, Finding, Release, TableFeatures, TablePredictions
from ._sources import from_networkx, from_pandas, from_polars, from_pyg, load
from ._studies import Audit, Experiment, Report, audit, experiment, report

__all__ = [
    "Audit",
    "AudienceWarning",
    "BudgetWarning",
    "DataError",
    "Event",
    "Experiment",
    "Export",
    "Finding",
    "Graph",
    "Guarantee",
    "Key",
    "Ledger",
    "LedgerError",
    "NotPrivateWarning",
    "PrivacyError",
    "ProGAP",
    "ProGAPError",
    "Progress",
    "Release",
    "ReleaseError",
    "Report",
    "SettingsError",
    "Stopped",
    "TableFeatures",
    "TablePredictions",
    "__version__",
    "accounting",
    "audit",
    "experiment",
    "from_networkx",
    "from_pandas",
    "from_polars",
    "from_pyg",
    "load",
    "report",
    "resume",
    "spent",
]

# Tracebacks and help show the names that users import.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("progap._"):
        globals()[_name].__module__ = "progap"
del _name
