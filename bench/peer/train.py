"""The training steps of ProGAP in PyTorch, to compare CPU time and memory with ours.

    python bench/peer/train.py [--data FILE.npz] [--method progap|gap|mlp] [--level edge|node] [--depth 2] [--epochs 100]
        [--threads 1]

A stage: a base network per branch (Linear, SELU, norm); concatenated, normalised, classified; Adam; accuracy on the
validation rows after each epoch.

- progap: stages 0 to K, with one more branch each
- gap: an encoder of two layers on the features; then a stage with K + 1 branches. Last layers are linear and no more;
  norm (at edge level) and SELU follow the normalised concatenation
- mlp: one branch of two layers, not normalised

- edge: batch normalisation, one full-batch step an epoch
- node: group normalisation, batches drawn by Poisson sampling, gradients clipped per sample and noised by Opacus

Features are a dense matrix, as PyTorch layers take them. Aggregation is left out: the inputs of later stages are
random, of the same size. The file, if given, is what `progap data convert DATASET FILE.npz` writes (sparse features);
else random data of 18,939 rows, 437 columns and 6 classes.
"""

import argparse
import json
import resource
import time

import numpy as np
import torch
from model import Stage, read_rows
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--method", choices=["progap", "gap", "mlp"], default="progap")
parser.add_argument("--level", choices=["edge", "node"], default="edge")
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--epochs", type=int, default=100)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--hidden", type=int, default=16)
args = parser.parse_args()
if args.level == "node":
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer
torch.set_num_threads(args.threads)
torch.manual_seed(1)

if args.data:
    x, y, (train, val, _) = read_rows(np.load(args.data))
else:
    rows, columns = 18_939, 437
    x = torch.zeros(rows, columns)
    # Five one-hot groups.
    for group in range(5):
        x[torch.arange(rows), group * (columns // 5) + torch.randint(0, columns // 5, (rows,))] = 1.0
    y = torch.randint(0, 6, (rows,))
    order = torch.randperm(rows)
    train, val = order[:14_212], order[14_212 : 14_212 + 1_876]


def norm(width):
    if args.level == "edge":
        return nn.BatchNorm1d(width)
    return nn.Identity() if args.method == "gap" else nn.GroupNorm(1, width)


def base(columns, layers=1):
    widths = [columns] + [args.hidden] * layers
    blocks = [(nn.Linear(a, b), nn.SELU(), norm(b)) for a, b in zip(widths, widths[1:])]
    if args.method == "gap":
        blocks[-1] = blocks[-1][:1]
    return nn.Sequential(*[layer for block in blocks for layer in block])


def train_stage(bases, inputs):
    """Trains a stage; gives its last accuracy on the validation rows."""
    gap = args.method == "gap"
    closing = nn.Sequential(norm(args.hidden * len(bases)), nn.SELU()) if gap else nn.Identity()
    model = Stage(bases, args.hidden, int(y.max()) + 1, normalise=args.method != "mlp", closing=closing)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    x_train, y_train, x_val = [i[train] for i in inputs], y[train], [i[val] for i in inputs]
    if args.level == "node":
        model = GradSampleModule(model)
        adam = DPOptimizer(adam, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=args.batch)

    def step(rows_of_inputs, rows_of_y):
        adam.zero_grad()
        F.cross_entropy(model(rows_of_inputs), rows_of_y).backward()
        adam.step()

    for _ in range(args.epochs):
        model.train()
        if args.level == "edge":
            step(x_train, y_train)
        else:
            for _ in range(round(len(train) / args.batch)):
                chosen = torch.rand(len(train)) < args.batch / len(train)
                step([i[chosen] for i in x_train], y_train[chosen])
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y[val]).float().mean().item()
    if args.level == "node":
        model.remove_hooks()
    return accuracy


start, cpu = time.perf_counter(), time.process_time()
messages = [torch.randn(len(x), args.hidden) for _ in range(args.depth + 1)]
if args.method == "progap":
    bases = []
    for stage in range(args.depth + 1):
        bases.append(base(args.hidden if stage else x.shape[1]))
        accuracy = train_stage(bases, [x] + messages[:stage])
else:
    accuracy = train_stage([base(x.shape[1], layers=2)], [x])
    if args.method == "gap":
        accuracy = train_stage([base(args.hidden) for _ in messages], messages)
print(
    json.dumps(
        dict(
            method=args.method,
            level=args.level,
            depth=args.depth,
            epochs=args.epochs,
            threads=args.threads,
            torch=torch.__version__,
            seconds=round(time.perf_counter() - start, 3),
            cpu_seconds=round(time.process_time() - cpu, 3),
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            val_accuracy=accuracy,
        )
    )
)
