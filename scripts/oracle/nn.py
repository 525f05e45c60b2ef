"""Writes crates/nn/tests/data/oracle.json: networks, their gradients and training steps as PyTorch computes them.

Needs torch (any recent version). Everything is computed in double precision from numbers that single precision holds
exactly. Weights are written as inputs x outputs, the transpose of PyTorch's layout.
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
ROWS = 40


class Network(nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case
        hidden, hops = case["hidden"], len(case["inputs"])
        norms = {"batch": nn.BatchNorm1d, "group": lambda h: nn.GroupNorm(1, h), "none": lambda h: nn.Identity()}
        self.linears, self.norms = nn.ModuleList(), nn.ModuleList()
        combined = hidden * hops if case["jk"] == "cat" else hidden
        for columns in case["inputs"]:
            for layer in range(case["layers"]):
                self.linears.append(nn.Linear(columns if layer == 0 else hidden, hidden))
                self.norms.append(nn.Identity() if self.plain(layer) else norms[case["norm"]](hidden))
        if case["closing"] == "combination":
            self.norms.append(norms[case["norm"]](combined))
        for norm in self.norms:
            for parameter in norm.parameters():
                nn.init.normal_(parameter, 0.5)
        self.head = nn.Linear(combined, case["classes"])
        for parameter in self.parameters():
            parameter.data = parameter.data.float().double()

    def plain(self, layer):
        """Whether a layer is linear and no more."""
        return self.case["closing"] == "combination" and layer + 1 == self.case["layers"]

    def forward(self, xs):
        case = self.case
        activation = {"selu": F.selu, "relu": F.relu, "tanh": torch.tanh}[case["activation"]]
        hops = []
        for b, x in enumerate(xs):
            for layer in range(case["layers"]):
                i = b * case["layers"] + layer
                x = self.linears[i](x)
                x = x if self.plain(layer) else self.norms[i](activation(x))
            hops.append(x)
        h = torch.stack(hops, 1)
        out = {
            "cat": lambda: h.flatten(1),
            "sum": lambda: h.sum(1),
            "mean": lambda: h.mean(1),
            "max": lambda: h.max(1).values,
        }[case["jk"]]()
        out = F.normalize(out) if case["normalise"] else out
        if case["closing"] == "combination":
            out = activation(self.norms[-1](out))
        return self.head(out)

    def freeze(self):
        """Frozen branches: not trained, and as in evaluation."""
        for b in self.case["frozen"]:
            for i in range(b * self.case["layers"], (b + 1) * self.case["layers"]):
                for module in (self.linears[i], self.norms[i]):
                    module.requires_grad_(False)
                    module.eval()

    def named(self):
        """Our names, with the module's tensor and whether it is a weight to be transposed."""
        case, names = self.case, []
        for b in range(len(case["inputs"])):
            for layer in range(case["layers"]):
                i, name = b * case["layers"] + layer, f"branches.{b}.layers.{layer}"
                names += [
                    (f"{name}.weight", self.linears[i].weight, True),
                    (f"{name}.bias", self.linears[i].bias, False),
                ]
                if not self.plain(layer):
                    names += [(f"{name}.norm.{what}", tensor, False) for what, tensor in norm_tensors(self.norms[i])]
        return names + [("head.weight", self.head.weight, True), ("head.bias", self.head.bias, False)]


def norm_tensors(norm):
    names = ["weight", "bias", "running_mean", "running_var"]
    return [(name, getattr(norm, name)) for name in names if hasattr(norm, name)]


def listed(tensor, transpose=False):
    tensor = tensor.detach()
    return [float(f"{v:.7g}") for v in (tensor.T if transpose else tensor).flatten().tolist()]


def in_parts(network, of):
    """The norm of the combination, part after part, as we store it; `of` is the tensor itself or its gradient."""
    if network.case["closing"] != "combination":
        return {}
    hidden, parts = network.case["hidden"], {}
    for what, tensor in norm_tensors(network.norms[-1]):
        if of(tensor) is not None:
            for part, values in enumerate(of(tensor).split(hidden)):
                parts[f"closing.{part}.norm.{what}"] = values
    return parts


def state(network):
    shaped = lambda t, flip: {"shape": list((t.T if flip else t).shape), "values": listed(t, flip)}
    closing = in_parts(network, lambda tensor: tensor)
    return {name: shaped(t, flip) for name, t, flip in network.named()} | {
        name: shaped(t, False) for name, t in closing.items()
    }


def gradients(network):
    closing = in_parts(network, lambda tensor: tensor.grad)
    return {name: listed(t.grad, flip) for name, t, flip in network.named() if t.grad is not None} | {
        name: listed(t) for name, t in closing.items()
    }


def sample_norms(model, rows, loss):
    """The norm of the gradient of each row's loss."""
    norms = []
    for row in rows:
        model.zero_grad()
        loss(row).backward()
        norms.append(sum(p.grad.square().sum() for p in model.parameters()).sqrt())
    return listed(torch.stack(norms))


def descent(optimiser, steps, loss, gradients, state):
    """The gradient before the first step, the loss before each, and where they lead."""
    found, losses = {}, []
    for step in range(steps):
        optimiser.zero_grad()
        losses.append(loss())
        losses[-1].backward()
        if step == 0:
            found["gradient"] = gradients()
        optimiser.step()
    found["losses"] = listed(torch.stack(losses))
    found["trained"] = {name: tensor["values"] for name, tensor in state().items()}
    return found


def run(case, xs, labels):
    torch.manual_seed(case["seed"])
    network = Network(case)
    result = dict(case)
    # A few steps away from the start, so that running statistics are not what they start as.
    for norm in network.norms:
        if isinstance(norm, nn.BatchNorm1d):
            norm.running_mean = torch.randn_like(norm.running_mean).float().double() * 0.1
            norm.running_var = (torch.rand_like(norm.running_var) + 0.5).float().double()
    result["state"] = state(network)
    network.eval()
    result["logits"] = listed(network(xs))
    if case["norm"] != "batch":
        loss = lambda r: F.cross_entropy(network([x[r : r + 1] for x in xs]), labels[r : r + 1])
        result["norms"] = sample_norms(network, range(ROWS), loss)
    network.train()
    network.freeze()
    trained = [p for p in network.parameters() if p.requires_grad]
    if case["optimiser"] == "adam":
        # A large epsilon: a gradient that is zero but for rounding must not become a step of full size.
        optimiser = torch.optim.Adam(trained, lr=0.05, eps=1e-3, weight_decay=case["weight_decay"])
    else:
        optimiser = torch.optim.SGD(trained, lr=0.05, momentum=0.9, weight_decay=case["weight_decay"])
    loss = lambda: F.cross_entropy(network(xs), labels)
    result |= descent(optimiser, case["steps"], loss, lambda: gradients(network), lambda: state(network))
    del result["seed"]
    return result


def main():
    torch.manual_seed(0)
    columns = [7, 3, 3]
    sparse = (torch.rand(ROWS, columns[0]) < 0.25).double()
    sparse *= torch.randint(1, 4, sparse.shape) * 0.5
    xs = [sparse] + [torch.randn(ROWS, c).mul(64).round().div(64) for c in columns[1:]]
    labels = torch.randint(0, 3, (ROWS,))
    base = dict(
        inputs=columns,
        hidden=5,
        layers=1,
        activation="selu",
        norm="batch",
        jk="cat",
        normalise=True,
        closing="branch",
        classes=3,
        frozen=[],
        optimiser="adam",
        weight_decay=0.0,
        steps=5,
    )
    variants = [
        dict(hidden=16),
        dict(layers=2, weight_decay=0.01),
        dict(layers=3, hidden=3),
        dict(norm="group"),
        dict(norm="group", layers=2, hidden=9),
        dict(norm="none", activation="relu", jk="sum", optimiser="sgd"),
        dict(norm="none", layers=2, activation="tanh", jk="mean", normalise=False, optimiser="sgd", weight_decay=0.1),
        dict(norm="group", jk="max"),
        dict(jk="max", layers=2),
        dict(frozen=[0, 2]),
        dict(frozen=[1], layers=2),
        dict(norm="group", hidden=18, activation="relu"),
    ]
    closing = [
        dict(),
        dict(layers=2, hidden=16),
        dict(layers=3, hidden=3, weight_decay=0.01),
        dict(norm="none"),
        dict(norm="none", layers=2, activation="tanh", normalise=False, optimiser="sgd"),
        dict(jk="max", layers=2),
        dict(jk="sum", norm="none"),
        dict(normalise=False, hidden=18, optimiser="sgd"),
        dict(frozen=[1], layers=2),
    ]
    variants += [{"closing": "combination", **variant} for variant in closing]
    cases = [run({**base, **variant, "seed": seed}, xs, labels) for seed, variant in enumerate(variants, 1)]
    data = dict(rows=ROWS, inputs=[listed(x) for x in xs], labels=labels.tolist(), cases=cases)
    path = pathlib.Path(__file__).parents[2] / "crates/nn/tests/data/oracle.json"
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size, "bytes,", len(cases), "cases")


if __name__ == "__main__":
    main()
