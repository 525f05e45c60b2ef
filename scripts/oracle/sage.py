"""Writes crates/nn/tests/data/sage.json: GraphSAGE models, their gradients and training steps as PyTorch computes them.

Needs torch (any recent version). Everything is computed in double precision from numbers that single precision holds
exactly. Weights are written as inputs x outputs, the transpose of PyTorch's layout; a convolution's weights for the
aggregate come before those for the node's own row.
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

from nn import descent, listed, sample_norms

NODES, COLUMNS, CLASSES = 60, 7, 3


class Sage(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case
        hidden, hops = case["hidden"], case["convolutions"]
        self.linears, self.roots, self.norms = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        for b in range(case["base_layers"]):
            self.block(f"base_{b}", COLUMNS if b == 0 else hidden)
        for c in range(hops):
            self.block(f"convolutions_{c}", hidden)
            self.roots[f"convolutions_{c}"] = nn.Linear(hidden, hidden, bias=False)
        self.block("joint", hops * hidden if case["jk"] == "cat" else hidden)
        for b in range(case["head_layers"] - 1):
            self.block(f"head_{b}", hidden)
        self.linears[f"head_{case['head_layers'] - 1}"] = nn.Linear(hidden, CLASSES)
        for parameter in self.parameters():
            parameter.data = parameter.data.float().double()

    def block(self, name, inputs):
        hidden = self.case["hidden"]
        self.linears[name] = nn.Linear(inputs, hidden)
        norms = {"batch": nn.BatchNorm1d, "group": lambda h: nn.GroupNorm(1, h), "none": lambda h: nn.Identity()}
        norm = self.norms[name] = norms[self.case["norm"]](hidden)
        for parameter in norm.parameters():
            nn.init.normal_(parameter, 0.5)
        if self.case["norm"] == "batch":
            norm.running_mean = torch.randn(hidden).float().double() * 0.1
            norm.running_var = (torch.rand(hidden) + 0.5).float().double()

    def forward(self, x, adjacency):
        case, linears, norms = self.case, self.linears, self.norms
        act = {"selu": F.selu, "relu": F.relu, "tanh": torch.tanh}[case["activation"]]
        for b in range(case["base_layers"]):
            x = norms[f"base_{b}"](act(linears[f"base_{b}"](x)))
        hops = []
        for c in range(case["convolutions"]):
            name = f"convolutions_{c}"
            z = linears[name](torch.sparse.mm(adjacency, x)) + self.roots[name](x)
            x = act(norms[name](F.normalize(z) if case["normalise"] else z))
            hops.append(x)
        hops = torch.stack(hops, 1)
        x = {
            "cat": lambda: hops.flatten(1),
            "sum": lambda: hops.sum(1),
            "mean": lambda: hops.mean(1),
            "max": lambda: hops.max(1).values,
        }[case["jk"]]()
        x = act(norms["joint"](linears["joint"](x)))
        last = case["head_layers"] - 1
        for b in range(last):
            x = norms[f"head_{b}"](act(linears[f"head_{b}"](x)))
        return linears[f"head_{last}"](x)

    def named(self, value):
        """Our names, with `value` of the module's tensors."""
        names = {}
        for key, linear in self.linears.items():
            name = key.replace("_", ".")
            weight = value(linear.weight).T
            if key in self.roots:
                weight = torch.cat([weight, value(self.roots[key].weight).T])
            names[f"{name}.weight"] = weight
            names[f"{name}.bias"] = value(linear.bias)
            if key in self.norms and self.case["norm"] != "none":
                norm = self.norms[key]
                names[f"{name}.norm.weight"], names[f"{name}.norm.bias"] = value(norm.weight), value(norm.bias)
        return names

    def statistics(self):
        if self.case["norm"] != "batch":
            return {}
        kinds = ("running_mean", "running_var")
        return {f"{key.replace('_', '.')}.norm.{k}": getattr(n, k) for key, n in self.norms.items() for k in kinds}


def state(model):
    tensors = {**model.named(lambda t: t.data), **model.statistics()}
    return {name: {"shape": list(t.shape), "values": listed(t)} for name, t in tensors.items()}


def gradients(model):
    return {name: listed(t) for name, t in model.named(lambda t: t.grad).items()}


def run(case, x, labels, rows, mean, total):
    torch.manual_seed(case["seed"])
    model, result = Sage(case), dict(case)
    adjacency = total if case["aggregation"] == "sum" else mean
    result["state"] = state(model)
    model.eval()
    result["logits"] = listed(model(x, adjacency))
    if case["convolutions"] == 1 and case["norm"] != "batch":
        loss = lambda row: F.cross_entropy(model(x, adjacency)[row : row + 1], labels[row : row + 1])
        result["norms"] = sample_norms(model, rows.tolist(), loss)
    model.train()
    # A large epsilon: a gradient that is zero but for rounding must not become a step of full size.
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02, eps=1e-3)
    loss = lambda: F.cross_entropy(model(x, adjacency)[rows], labels[rows])
    result |= descent(optimiser, 5, loss, lambda: gradients(model), lambda: state(model))
    del result["seed"]
    return result


def main():
    torch.manual_seed(3)
    x = (torch.rand(NODES, COLUMNS) < 0.3).double() * torch.randint(1, 4, (NODES, COLUMNS)) * 0.5
    labels = torch.randint(0, CLASSES, (NODES,))
    rows = torch.randperm(NODES)[:35].sort().values
    # Directed; some nodes have no neighbours, one is everybody's.
    total = (torch.rand(NODES, NODES) < 0.08).double()
    total[:, 5], total[:4] = 1.0, 0.0
    degrees = total.sum(1, keepdim=True)
    mean = (total / degrees.clamp(min=1)).to_sparse()
    edges = total.nonzero()
    base = dict(
        hidden=16, base_layers=1, convolutions=2, head_layers=1, activation="selu", norm="batch", jk="cat",
        normalise=True, aggregation="mean",
    )
    variants = [
        dict(), dict(hidden=5, convolutions=3), dict(hidden=4, base_layers=2, head_layers=3),
        dict(hidden=18, convolutions=1), dict(hidden=5, norm="none", jk="sum", activation="tanh", normalise=False),
        dict(hidden=6, norm="group", jk="mean", head_layers=2), dict(hidden=5, jk="max"),
        dict(convolutions=1, norm="group", aggregation="sum"),
        dict(hidden=6, convolutions=1, norm="none", aggregation="sum", base_layers=2, head_layers=2),
    ]
    sparse = total.to_sparse()
    cases = [run({**base, **v, "seed": seed}, x, labels, rows, mean, sparse) for seed, v in enumerate(variants, 1)]
    data = dict(
        nodes=NODES, columns=COLUMNS, classes=CLASSES, features=listed(x), labels=labels.tolist(), rows=rows.tolist(),
        targets=edges[:, 0].tolist(), sources=edges[:, 1].tolist(), cases=cases,
    )
    path = pathlib.Path(__file__).parents[2] / "crates/nn/tests/data/sage.json"
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size, "bytes,", len(cases), "cases")


if __name__ == "__main__":
    main()
