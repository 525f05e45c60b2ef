"""The arguments of ProGAP, as editors see them. Made by `python crates/python/tests/test_types.py`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Literal, TypedDict, Union

if TYPE_CHECKING:
    from ._graph import Graph
    from ._ledger import Ledger
    from ._progap import Progress


class Parameters(TypedDict, total=False):
    """What is None has the default of the method at the level."""

    #: How the model is trained
    method: (
        Literal["progap", "progap-labels", "progap-views", "gap", "mlp", "sage", "edge-rand", "lpgnet", "dp-gnn"] | None
    )
    #: What is private: nothing, edges, or whole records of nodes
    level: Literal["none", "edge", "node"] | None
    #: Privacy budget
    epsilon: float | None
    #: DP delta, or `auto`: at most 1/(10 n) for n records
    delta: float | None
    #: Number of aggregations over the graph
    depth: int | None
    #: Along which edges a node receives
    direction: Literal["in", "out", "both"] | None
    #: What a node sends, in the methods progap-labels and progap-views: auto is labels, or something else where labels
    #: do not help; embeddings come with the defaults of the method gap
    messages: Literal["embeddings", "labels", "auto", "structure", "features"] | None
    #: Width of hidden layers
    hidden: int | None
    #: Layers of each base network
    layers: int | None
    #: Layers of the encoder, in the method gap
    encoder_layers: int | None
    #: Non-linear function
    activation: Literal["selu", "relu", "tanh", "elu"] | None
    #: How base networks are combined
    jk: Literal["cat", "sum", "mean", "max"] | None
    #: Share of values set to zero in training
    dropout: float | None
    #: Train only the newest base network in each stage
    layerwise: bool | None
    #: Learning rate
    learning_rate: float | None
    #: Weight decay
    weight_decay: float | None
    #: Epochs in each stage
    epochs: int | None
    #: Early-stopping patience in epochs (0.5 % relative improvement); 0 disables it
    patience: int | None
    #: Expected batch size; at other levels a batch is the whole training set
    batch_size: int | None
    #: Norm to which gradients are clipped
    clip: float | None
    #: How features are learnt, in the method progap-views; by default what suits the public sizes
    feature_learning: Literal["gradients", "table", "stages"] | None
    #: Weight of training nodes as receivers (node level, undirected edges); others have 1
    known_weight: float | None
    #: How a sender's influence is bounded
    bounding: Literal["weight", "cap", "sample"] | None
    #: Square of a sender's largest influence; with sampling its largest number of edges
    max_degree: int | None
    #: Noise of gradients over that of aggregations
    gradient_noise_ratio: float | None
    #: Which epoch of a stage is kept
    selection: Literal["best-validation", "last-epoch"] | None
    #: Validation metric by which epoch and stage are chosen
    metric: (
        Literal["accuracy", "balanced-accuracy", "macro-f1", "auroc", "average-precision", "log-loss", "calibration-error"] | None
    )
    #: How much classes count in training
    class_weights: Literal["none", "balanced"] | None
    #: How number columns without declared bounds are brought to scale; noisy by default where there are enough nodes
    #: for it
    scaling: Literal["single", "noisy"] | None
    #: How probabilities are calibrated
    calibration: Literal["none", "temperature"] | None
    #: By which theorem noise is chosen
    accounting: Literal["best", "rdp", "theorem"] | None
    #: Whether anyone may know the order in which the data lists nodes; a release of an order that tells edges is
    #: refused otherwise
    order: Literal["tested", "public"] | None
    #: Renumber nodes at random, where their position is their id, so that their order tells nothing;
    #: private/numbers.csv of the release has the new numbers
    shuffle: bool | None
    #: At level edge: protect one direction of an edge (True) or both together (False); by the graph if not given
    directed: bool | None
    #: ``'paper'`` starts from the published settings
    preset: Literal["default", "paper"] | None
    #: For experiments: makes noise and initial values repeatable, and the model not private
    random_state: Any
    #: Ledger to charge before any noisy value is used; it refuses what exceeds the budget
    ledger: Union[str, os.PathLike[str], Ledger, None]
    #: The data set's name in the ledger; found by the data if not given
    ledger_name: str | None
    #: The graph, where ``fit`` is given nodes: for scikit-learn's tools, which divide nodes into folds
    graph: Graph | None
    #: True shows a bar of tqdm; a function is called with each epoch's Progress, and stops the run by returning False
    progress: bool | Callable[[Progress], Any] | None
