"""What is guaranteed, in figures and in words."""

from __future__ import annotations

import html
from typing import Any, Mapping


class Guarantee:
    """What is guaranteed about a model and its predictions. ``str()`` gives the sentences to show to anyone.

    Attributes
    ----------
    private : whether there is any
    epsilon, delta : the budget; None without a guarantee
    unit : what one record is: ``"edge"``, ``"edge-undirected"`` or ``"node"`` (a node's features, label and own list of
        receivers); None without a guarantee, also where the noise comes from a seed
    statement : the whole privacy statement, as it stands in ``privacy.json`` of a release
    """

    def __init__(self, statement: Mapping[str, Any], line: str) -> None:
        self.statement = dict(statement)
        self._line = line
        self.private = bool(statement["private"])
        self.epsilon: float | None = statement.get("epsilon") if self.private else None
        self.delta: float | None = statement.get("delta") if self.private else None
        self.unit: str | None = statement.get("unit") if self.private else None

    @property
    def accountant(self) -> str:
        """Which accountant computed epsilon."""
        return str(self.statement["accountant"])

    @property
    def public(self) -> list[str]:
        """What was assumed to be public."""
        return list(self.statement["public"])

    @property
    def not_covered(self) -> list[str]:
        """What the guarantee does not cover."""
        return list(self.statement["not_covered"])

    def __str__(self) -> str:
        return str(self.statement["in_words"])

    def __repr__(self) -> str:
        return f"Guarantee({self._line})"

    def __bool__(self) -> bool:
        return self.private

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{html.escape(item)}</li>" for item in self.not_covered)
        return (
            f"<div><b>{html.escape(self._line)}</b><p>{html.escape(str(self))}</p>"
            + (f"<details><summary>not covered</summary><ul>{listed}</ul></details>" if listed else "")
            + "</div>"
        )
