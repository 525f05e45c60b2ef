"""The split of Facebook100 Berkeley13 on which the authors' code was measured, to compare accuracies on the same nodes.

    progap data convert fb:Berkeley13 any.npz
    python bench/peer/published_split.py Berkeley13.mat any.npz published.npz
    progap train published.npz --preset paper --level node --epsilon 8 --depth 5

The published code draws one permutation of all nodes with a year, before rare classes are left out: the first tenth is
for validation, the next 15 % for testing. PyTorch's generator with seed 12345 gives the sizes that were reported,
14,212, 1,876 and 2,851 nodes; this script fails if it does not.
"""

import sys

import numpy as np
import torch
from scipy.io import loadmat

matrix, source, target = sys.argv[1:]
data = dict(np.load(source))
labelled = np.flatnonzero(loadmat(matrix)["local_info"][:, 5] > 0)
torch.manual_seed(12345)
order = torch.randperm(len(labelled)).numpy()
validation, test = round(0.1 * len(labelled)), round(0.15 * len(labelled))
part = np.zeros(len(labelled), dtype=int)
part[order[:validation]] = 1
part[order[validation : validation + test]] = 2
part = part[np.searchsorted(labelled, data["node_ids"])]
for number, name in enumerate(("train", "val", "test")):
    data[f"{name}_mask"] = part == number
sizes = [int((part == number).sum()) for number in range(3)]
assert sizes == [14_212, 1_876, 2_851], f"another generator, or another file: {sizes}"
np.savez_compressed(target, **data)
print(target, sizes)
