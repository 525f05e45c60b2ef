"""The training steps of edge-level ProGAP in PyTorch, to compare CPU time with ours.

    python bench/peer/train.py [--data FILE.npz] [--depth 2] [--epochs 100] [--threads 1]

Stages 0 to K: Linear, SELU, BatchNorm per branch; concatenated, normalised, classified; full-batch Adam; accuracy on the
validation rows after each epoch. Features are a dense matrix, as PyTorch layers take them. Aggregation is left out: the
inputs of later stages are random, of the same size. The file, if given, has `x` (rows x columns), `y`, `train` and
`val` (row numbers); else random data of 18,939 rows, 437 columns and 6 classes.
"""

import argparse
import json
import resource
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--epochs", type=int, default=100)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--hidden", type=int, default=16)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(1)

if args.data:
    data = np.load(args.data)
    x, y = torch.tensor(data["x"], dtype=torch.float32), torch.tensor(data["y"], dtype=torch.int64)
    train, val = torch.tensor(data["train"]), torch.tensor(data["val"])
else:
    rows, columns = 18_939, 437
    x = torch.zeros(rows, columns)
    # Five one-hot groups.
    for group in range(5):
        x[torch.arange(rows), group * (columns // 5) + torch.randint(0, columns // 5, (rows,))] = 1.0
    y = torch.randint(0, 6, (rows,))
    order = torch.randperm(rows)
    train, val = order[:14_212], order[14_212 : 14_212 + 1_876]


class Stage(nn.Module):
    def __init__(self, bases, classes):
        super().__init__()
        self.bases = nn.ModuleList(bases)
        self.head = nn.Linear(args.hidden * len(bases), classes)

    def forward(self, inputs):
        h = torch.cat([base(x) for base, x in zip(self.bases, inputs)], 1)
        return self.head(F.normalize(h))


start, cpu = time.perf_counter(), time.process_time()
inputs, bases, classes = [x], [], int(y.max()) + 1
for stage in range(args.depth + 1):
    columns = inputs[-1].shape[1]
    bases.append(nn.Sequential(nn.Linear(columns, args.hidden), nn.SELU(), nn.BatchNorm1d(args.hidden)))
    model = Stage(bases, classes)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    x_train, x_val = [i[train] for i in inputs], [i[val] for i in inputs]
    for _ in range(args.epochs):
        model.train()
        adam.zero_grad()
        F.cross_entropy(model(x_train), y[train]).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y[val]).float().mean().item()
    inputs.append(torch.randn(len(x), args.hidden))
print(
    json.dumps(
        dict(
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
