"""Types: stubs say what the compiled module has, and the package is typed."""

import importlib.util
import inspect
import pydoc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import progap
from progap import _estimator

HERE = Path(__file__).parent.parent
PARAMETERS = HERE / "python/progap/_parameters.py"


def parameters() -> str:
    """The file that tells type checkers the arguments of ProGAP, made of the declarations."""
    kinds = {"bool": "bool", "int": "int", "float": "float"}
    lines = [
        '"""The arguments of ProGAP, as editors see them. Made by `python crates/python/tests/test_types.py`."""',
        "",
        "from __future__ import annotations",
        "",
        "import os",
        "from typing import TYPE_CHECKING, Any, Callable, Literal, TypedDict, Union",
        "",
        "if TYPE_CHECKING:",
        "    from ._graph import Graph",
        "    from ._ledger import Ledger",
        "    from ._progap import Progress",
        "",
        "",
        "class Parameters(TypedDict, total=False):",
        '    """What is None has the default of the method at the level."""',
        "",
    ]
    for name, about in _estimator.SETTINGS.items():
        if about["choices"]:
            kind = f"Literal[{', '.join(repr(choice).replace(chr(39), chr(34)) for choice, _ in about['choices'])}]"
        else:
            kind = kinds[about["kind"]]
        lines += textwrap.wrap(about["help"], 120, initial_indent="    #: ", subsequent_indent="    #: ")
        line = f"    {name}: {kind} | None"
        lines += [line] if len(line) <= 120 else [f"    {name}: (", f"        {kind} | None", "    )"]
    types = {
        "directed": "bool | None",
        "preset": 'Literal["default", "paper"] | None',
        "random_state": "Any",
        "ledger": "Union[str, os.PathLike[str], Ledger, None]",
        "ledger_name": "str | None",
        "graph": "Graph | None",
        "progress": "bool | Callable[[Progress], Any] | None",
    }
    assert list(types) == list(_estimator.OTHERS)
    for name, (_, said) in _estimator.OTHERS.items():
        lines += [f"    #: {said}", f"    {name}: {types[name]}"]
    return "\n".join(lines) + "\n"


def test_the_arguments_that_editors_know_are_those_that_are_declared():
    assert PARAMETERS.read_text() == parameters(), "run python crates/python/tests/test_types.py"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_stubs_are_true():
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "progap._progap"], capture_output=True, text=True, cwd=HERE
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_package_is_typed():
    checked = subprocess.run([sys.executable, "-m", "mypy"], capture_output=True, text=True, cwd=HERE)
    assert checked.returncode == 0, checked.stdout
    assert (Path(progap.__file__).parent / "py.typed").exists()


def test_everything_that_is_offered_is_documented():
    for name in progap.__all__:
        thing = getattr(progap, name)
        if name != "__version__":
            assert (thing.__doc__ or "").strip(), name
            if isinstance(thing, type) and thing.__module__ == "progap":
                for member in vars(thing):
                    if not member.startswith("_") and callable(getattr(thing, member)):
                        assert getattr(thing, member).__doc__, f"{name}.{member}"


def test_help_reads_well():
    """From the first line on: what it is, an example, and every name that is offered, by that name."""
    said = pydoc.render_doc(progap, renderer=pydoc.plaintext)
    assert said.splitlines()[3].strip().startswith("progap - ProGAP: train node classifiers")
    assert said.index(">>> g = progap.load") < said.index("CLASSES")
    for name in progap.__all__:
        assert name == "__version__" or f" {name}" in said, name
    assert "_progap.Event" not in said and "progap._" not in said.split("FILE")[0].split("PACKAGE CONTENTS")[0]
    about = pydoc.render_doc(progap.ProGAP, renderer=pydoc.plaintext)
    for setting, declared in _estimator.SETTINGS.items():
        assert f"{setting} : " in about and declared["help"][1:] in about
    assert list(inspect.signature(progap.ProGAP).parameters) == list(_estimator.PARAMETERS)
    assert max(map(len, progap.__doc__.splitlines())) <= 130, "it fits a screen"


if __name__ == "__main__":
    PARAMETERS.write_text(parameters())
