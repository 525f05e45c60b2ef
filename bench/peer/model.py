"""What the peers share: the rows of a data set as `progap data convert DATASET FILE.npz` writes them, and a stage's
model."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def read_rows(data):
    """Dense features, labels, and the nodes of the three parts."""
    offsets, columns = data["x_indptr"], data["x_indices"]
    dense = np.zeros(data["x_shape"], dtype=np.float32)
    dense[np.repeat(np.arange(len(dense)), np.diff(offsets)), columns] = data["x_data"]
    parts = [torch.tensor(np.flatnonzero(data[f"{part}_mask"])) for part in ("train", "val", "test")]
    return torch.tensor(dense), torch.tensor(data["y"]).long(), parts


class Stage(nn.Module):
    """Bases side by side, divided by their length, classified; `closing` is what stands before the head, as in GAP."""

    def __init__(self, bases, hidden, classes, normalise=True, closing=nn.Identity()):
        super().__init__()
        self.bases = nn.ModuleList(bases)
        self.closing = closing
        self.head = nn.Linear(hidden * len(bases), classes)
        self.normalise = normalise

    def embed(self, inputs):
        h = torch.cat([base(x) for base, x in zip(self.bases, inputs)], 1)
        return F.normalize(h) if self.normalise else h

    def forward(self, inputs):
        return self.head(self.closing(self.embed(inputs)))
