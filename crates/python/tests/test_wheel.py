"""What is published: a wheel that works in a fresh environment without a compiler, and a source distribution that holds
all it takes.

Here both are made in the debug profile. `package` makes them as they are published, names their folder in PROGAP_DIST,
and has them tried by the same tests; it alone looks at the size, and builds a wheel from the source distribution.
"""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import progap

HERE = Path(__file__).parent.parent
PUBLISHED = os.environ.get("PROGAP_DIST")

pytest.importorskip("maturin")


def made(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"progap-*{ending}")
    return found


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    if PUBLISHED:
        return Path(PUBLISHED)
    folder = tmp_path_factory.mktemp("dist")
    for what in (["build", "--profile", "dev"], ["sdist"]):
        subprocess.run([sys.executable, "-m", "maturin", *what, "--out", str(folder)], cwd=HERE, check=True)
    return folder


def interpreters() -> list[str]:
    """Every Python from 3.10 on this machine that can make environments; the one that runs this first."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for minor in range(10, 20):
        program = shutil.which(f"python3.{minor}")
        if program and f"3.{minor}" not in found:
            if subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
                found[f"3.{minor}"] = program
    return list(found.values())


#: What a user does first, from arrays to a verified release.
FIRST = """
import numpy as np, progap
rng = np.random.default_rng(0)
y = rng.integers(2, size=200)
pairs = rng.integers(200, size=(2, 2000))
pairs = pairs[:, (y[pairs[0]] == y[pairs[1]]) & (pairs[0] != pairs[1])]
g = progap.Graph(x=np.eye(2)[y], edge_index=np.hstack([pairs, pairs[::-1]]), y=y)
model = progap.ProGAP(level="edge", epsilon=1.0).fit(g)
assert model.guarantee_.epsilon <= 1.0 and model.score() > 0.5
model.save("release")
assert progap.Release("release").verify().predict([0, 1]).shape == (2,)
assert progap.accounting.epsilon(progap.Event.gaussian(4.0), delta=1e-6).value < 2
"""


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
def test_a_fresh_environment_without_a_compiler(dist, tmp_path, python):
    subprocess.run([python, "-m", "venv", tmp_path / "fresh"], check=True)
    programs = tmp_path / "fresh/bin"
    # Nothing else is on the path: no compiler, no cargo, no command of that name.
    bare = {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "PATH": str(programs)}
    assert not any(shutil.which(name, path=bare["PATH"]) for name in ("cc", "gcc", "cargo", "rustc", "progap"))

    def run(*command: object) -> str:
        done = subprocess.run([str(part) for part in command], env=bare, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        made(dist, ".whl"),
    )
    run(programs / "python", "-c", FIRST)
    assert run(programs / "progap", "--version").strip() == f"progap {progap.__version__}"
    assert "progap" in run(programs / "progap", "methods")
    run(programs / "progap", "verify", "release")
    # The command is the library, and no second program.
    (library,) = (tmp_path / "fresh").rglob("_progap*.so")
    assert (programs / "progap").stat().st_size < 10_000 < library.stat().st_size


def test_one_wheel_for_every_python(dist):
    wheel = made(dist, ".whl")
    assert "-cp310-abi3-" in wheel.name
    if PUBLISHED:
        assert wheel.stat().st_size < 20e6, f"{wheel.stat().st_size / 1e6:.1f} MB"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for wanted in ("progap/py.typed", "progap/_progap.pyi", "LICENSE-MIT", "LICENSE-APACHE", "entry_points.txt"):
            assert any(name.endswith(wanted) for name in names), (wanted, names)
        assert not any("test" in name or "__pycache__" in name for name in names), names
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        said = email.message_from_bytes(archive.read(metadata))
    assert (said["Name"], said["Version"], said["Requires-Python"]) == ("progap", progap.__version__, ">=3.10")
    assert (
        said["License-Expression"] == "MIT OR Apache-2.0"
        and said["Summary"]
        and said["Description-Content-Type"].startswith("text/markdown")
    )
    assert said.get_payload().startswith("# progap") and "Typing :: Typed" in said.get_all("Classifier")
    needed = [name for name in said.get_all("Requires-Dist") if "extra ==" not in name]
    assert needed == ["numpy>=1.23"]


def test_the_source_distribution_is_whole(dist, tmp_path):
    with tarfile.open(made(dist, ".tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    crates = {name.split("/")[1] for name in names if name.startswith("crates/") and name.endswith("/Cargo.toml")}
    assert {"graph", "privacy", "nn", "progap", "cli", "python"} <= crates and "Cargo.lock" in names
    assert any(name.endswith("LICENSE-MIT") for name in names) and "PKG-INFO" in names
    (source,) = tmp_path.iterdir()
    manifest = source / "crates/python/Cargo.toml"
    # All of it is there: nothing has to be looked up outside of the folder but crates that were fetched before.
    checked = subprocess.run(
        ["cargo", "metadata", "--offline", "--format-version", "1", "--manifest-path", str(manifest)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    own = [package["manifest_path"] for package in json.loads(checked.stdout)["packages"] if package["source"] is None]
    assert own and all(Path(path).is_relative_to(source) for path in own), own


def test_a_registry_takes_both(dist):
    """What twine says of the description and the metadata before an upload."""
    pytest.importorskip("twine")
    both = [str(made(dist, ".whl")), str(made(dist, ".tar.gz"))]
    checked = subprocess.run([sys.executable, "-m", "twine", "check", *both], capture_output=True, text=True)
    assert checked.returncode == 0 and checked.stdout.count("PASSED") == 2, checked.stdout + checked.stderr


@pytest.mark.skipif(not PUBLISHED, reason="a build of its own; `package` tries it")
def test_a_wheel_from_the_source_distribution(dist, tmp_path):
    with tarfile.open(made(dist, ".tar.gz")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(tmp_path / "again"),
        str(source),
    ]
    # Crates that others wrote are the same: what was compiled of them is used again.
    shared = {"CARGO_TARGET_DIR": str(HERE.parent.parent / "target"), "CARGO_NET_OFFLINE": "true"}
    # maturin lies beside this Python, which need not be activated.
    shared["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    built = subprocess.run(command, env={**os.environ, **shared}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    test_one_wheel_for_every_python(tmp_path / "again")
    test_a_fresh_environment_without_a_compiler(tmp_path / "again", tmp_path, sys.executable)
