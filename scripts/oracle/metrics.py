"""Writes crates/progap/tests/oracle/metrics.json: metrics of predictions as scikit-learn computes them.

Needs scikit-learn. Run from anywhere: python scripts/oracle/metrics.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    precision_recall_curve,
    recall_score,
    roc_auc_score,
)
from sklearn.utils.class_weight import compute_class_weight

OUT = Path(__file__).parents[2] / "crates/progap/tests/oracle/metrics.json"


def calibration_error(truth, probabilities, bins=10):
    """Naeini et al. 2015: bins ](i-1)/10, i/10] of the largest probability."""
    predicted, confidence = probabilities.argmax(1), probabilities.max(1).astype(np.float64)
    edges, error = np.linspace(0, 1, bins + 1), 0.0
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - (predicted == truth)[inside].mean())
    return error


def bootstrap(truth, probabilities, resamples=2000):
    """95 % intervals by resampling nodes: percentiles over the resamples in which the score is defined."""
    rng, classes = np.random.default_rng(5), probabilities.shape[1]
    predicted, scores = probabilities.argmax(1), {"recalls": [], "aurocs": [], "average_precisions": []}
    for _ in range(resamples):
        drawn = rng.integers(len(truth), size=len(truth))
        rows = {name: [] for name in scores}
        for c in range(classes):
            member, score = truth[drawn] == c, probabilities[drawn, c]
            both = member.any() and not member.all()
            rows["recalls"].append((predicted[drawn] == c)[member].mean() if member.any() else np.nan)
            rows["aurocs"].append(roc_auc_score(member, score) if both else np.nan)
            rows["average_precisions"].append(average_precision_score(member, score) if both else np.nan)
        for name, row in rows.items():
            scores[name].append(row)
    return {name: np.nanpercentile(rows, [2.5, 97.5], axis=0).T.tolist() for name, rows in scores.items()}


def curve(member, score):
    """precision_recall_curve without its last point, from the largest threshold down."""
    precision, recall, thresholds = precision_recall_curve(member, score)
    return {
        "thresholds": [float(t) for t in thresholds[::-1]],
        "precision": precision[:-1][::-1].tolist(),
        "recall": recall[:-1][::-1].tolist(),
    }


def case(rng, nodes, shares, strength, digits):
    classes = len(shares)
    truth = rng.choice(classes, nodes, p=shares)
    truth[:classes] = range(classes)
    logits = rng.normal(size=(nodes, classes)) + strength * np.eye(classes)[truth] + np.log(shares)
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    # Rounded, so that some nodes have equal scores; what is missing goes to the first class.
    probabilities = probabilities.round(digits)
    probabilities[:, 0] += 1 - probabilities.sum(1)
    probabilities = probabilities.clip(0, 1).astype(np.float32)
    predicted, labels = probabilities.argmax(1), list(range(classes))
    one_hot = np.eye(classes)[truth]
    auroc = [roc_auc_score(one_hot[:, c], probabilities[:, c]) for c in labels]
    precision = [average_precision_score(one_hot[:, c], probabilities[:, c]) for c in labels]
    rarest = min(labels, key=lambda c: ((truth == c).sum(), -c))
    return {
        "truth": truth.tolist(),
        "probabilities": [float(p) for p in probabilities.ravel()],
        "classes": classes,
        "accuracy": float((predicted == truth).mean()),
        "balanced_accuracy": balanced_accuracy_score(truth, predicted),
        "macro_f1": f1_score(truth, predicted, average="macro"),
        "recalls": recall_score(truth, predicted, labels=labels, average=None).tolist(),
        "auroc": float(np.mean(auroc)),
        "average_precision": float(precision[rarest] if classes == 2 else np.mean(precision)),
        "log_loss": log_loss(truth, probabilities, labels=labels),
        "calibration_error": float(calibration_error(truth, probabilities)),
        "rarest": rarest,
        "curve": curve(one_hot[:, rarest], probabilities[:, rarest]),
        "intervals": bootstrap(truth, probabilities),
        "balanced_weights": compute_class_weight("balanced", classes=np.array(labels), y=truth).tolist(),
    }


def main():
    rng = np.random.default_rng(17)
    cases = [
        case(rng, 120, [0.9, 0.1], 1.0, 2),
        case(rng, 60, [0.5, 0.5], 2.0, 1),
        case(rng, 150, [0.4, 0.3, 0.25, 0.05], 1.5, 2),
        case(rng, 40, [0.2] * 5, 0.0, 3),
    ]
    OUT.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
