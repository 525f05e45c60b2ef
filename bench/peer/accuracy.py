"""ProGAP at node level in PyTorch and Opacus, to compare test accuracy with `progap train --preset paper` split by
split.

    progap data convert fb:Berkeley13 split1.npz --seed 1
    python bench/peer/accuracy.py split1.npz --depth 5 --noise 1.6059 --seed 1
    progap train fb:Berkeley13 --level node --epsilon 8 --preset paper --depth 5 --seed 1

`--noise` is the multiplier that `progap inspect` shows for the release. Each node keeps at most `--degree` of its
out-edges; aggregates are noised by multiplier times the root of it. The last epoch of a stage is kept, or with `--best`
the one with the best validation accuracy, as the published code does without accounting for it.
"""

import argparse
import copy
import json

import numpy as np
import torch
from model import Stage, read_rows
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--depth", type=int, default=5)
parser.add_argument("--noise", type=float, required=True)
parser.add_argument("--degree", type=int, default=100)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--hidden", type=int, default=16)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--best", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(args.seed)

data = np.load(args.data)
x, y, (train, val, test) = read_rows(data)
inputs, nodes = [x], len(y)

# The graph is symmetric, so that a row of the matrix lists receivers as well as senders.
starts = data["adj_indptr"].astype(np.int64)
senders, receivers = np.repeat(np.arange(nodes), np.diff(starts)), data["adj_indices"].astype(np.int64)
order = np.lexsort((np.random.default_rng(args.seed).random(len(senders)), senders))
senders, receivers = senders[order], receivers[order]
kept = np.arange(len(senders)) - np.repeat(starts[:-1], np.diff(starts)) < args.degree
edges = torch.tensor(np.stack([receivers[kept], senders[kept]]))
graph = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (nodes, nodes)).to_sparse_csr()


def accuracy(model, part):
    with torch.no_grad():
        return (model([x[part] for x in inputs]).argmax(1) == y[part]).float().mean().item()


bases, classes = [], int(y.max()) + 1
for stage in range(args.depth + 1):
    bases.append(nn.Sequential(nn.Linear(inputs[-1].shape[1], args.hidden), nn.SELU(), nn.GroupNorm(1, args.hidden)))
    network = Stage(bases, args.hidden, classes)
    model = GradSampleModule(network)
    adam = DPOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01),
        noise_multiplier=args.noise,
        max_grad_norm=1.0,
        expected_batch_size=args.batch,
    )
    rows, labels, best = [x[train] for x in inputs], y[train], (-1.0, None)
    for _ in range(args.epochs):
        for _ in range(len(train) // args.batch):
            drawn = torch.rand(len(train)) < args.batch / len(train)
            adam.zero_grad()
            F.cross_entropy(model([x[drawn] for x in rows]), labels[drawn]).backward()
            adam.step()
        if accuracy(network, val) > best[0]:
            best = (accuracy(network, val), copy.deepcopy(network.state_dict()))
    model.remove_hooks()
    if args.best:
        network.load_state_dict(best[1])
    bases = list(network.bases)
    with torch.no_grad():
        sums = graph @ F.normalize(bases[-1](inputs[-1]))
        noisy = sums + torch.randn_like(sums) * args.noise * args.degree**0.5
    if stage < args.depth:
        inputs.append(noisy)
print(json.dumps(dict(seed=args.seed, best=args.best, test_accuracy=accuracy(network, test))))
