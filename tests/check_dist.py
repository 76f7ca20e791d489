"""Check the wheel and the sdist of a folder: python tests/check_dist.py dist

They hold what git tracks and nothing else; the wheel installs without extras into an empty environment, and
works there from outside the tree.
"""

import argparse
import email
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/riskbayes", "tests", "paper", "examples", "benchmarks", "doc", "requirements")
"""Folders of the sdist; those of the wheel are the first one."""
EXTRAS = ("matplotlib", "numba", "pyarrow", "dask", "onnx", "pandas", "polars", "torch")
"""What an installation without extras must not bring."""

SMOKE = """
import importlib.util, sys, warnings
warnings.simplefilter("error")
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
import riskbayes
folder = sys.argv[1]
assert importlib.util.find_spec("riskbayes").origin.startswith(sys.prefix), riskbayes.__file__
brought = [name for name in sys.argv[2:] if importlib.util.find_spec(name) is not None]
assert not brought, f"an installation without extras brings {brought}"
X, y = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, random_state=0)
for name in ("GaussianNB", "QuadraticDiscriminantAnalysis", "RiskBayesClassifier"):
    clf = getattr(riskbayes, name)()
    clf.fit(train, y_train)
    P = riskbayes.load(clf.save(f"{folder}/model.rb")).predict_proba(test)
    assert (P == clf.predict_proba(test)).all()
    print(f"{name}: held-out error {np.mean(clf.predict(test) != y_test):.3f}")
"""


def main() -> int:
    """Check the files of a folder; return the status of the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path)
    dist = parser.parse_args().dist.resolve()
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    install_and_use(wheel)
    return 0


def tracked(*folders: str) -> set[str]:
    """The files that git tracks in these folders."""
    found = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, check=True)
    return {name for name in found.stdout.decode().split("\0") if name}


def compare(what: str, found: set[str], expected: set[str]) -> None:
    """Fail unless two sets of names are the same."""
    if found != expected:
        missing, foreign = sorted(expected - found)[:9], sorted(found - expected)[:9]
        raise SystemExit(f"{what}: missing {missing}, and holds {foreign}")
    print(f"{what}: {len(found)} files, those that it should hold")


def check_wheel(path: Path) -> None:
    """The package as git has it, the metadata of the wheel, the licence, and no requirement of a path."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = email.message_from_bytes(archive.read(metadata))
    own = {name for name in names if ".dist-info/" not in name}
    compare(path.name, own, {name.removeprefix("src/") for name in tracked("src/riskbayes")})
    beside = {name.partition(".dist-info/")[2] for name in names} - {""}
    compare("its metadata", beside, {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"})
    assert about["License-Expression"] == "BSD-3-Clause"
    assert not [need for need in about.get_all("Requires-Dist", []) if "@" in need]


def check_sdist(path: Path) -> None:
    """The folders as git has them, and the files at the top."""
    with tarfile.open(path) as archive:
        names = {name.name.partition("/")[2] for name in archive.getmembers() if name.isfile()}
    top = {name for name in names if "/" not in name}
    compare(path.name, names - top, tracked(*FOLDERS))
    compare("its top", top - {"PKG-INFO"}, {name for name in tracked() if "/" not in name})


def install_and_use(wheel: Path) -> None:
    """Install the wheel alone into an empty environment, and use it from an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        scripts = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        run = [scripts / "python", "-I"]
        (folder / "work").mkdir()

        def call(*arguments: object) -> None:
            subprocess.run([str(each) for each in arguments], cwd=folder / "work", check=True)

        call(*run, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        (folder / "smoke.py").write_text(SMOKE, encoding="utf-8")
        call(*run, folder / "smoke.py", folder / "work", *EXTRAS)
        for arguments in (["--version"], ["inspect", "model.rb"], ["explore", "--out", "explore.html"]):
            call(scripts / "riskbayes", *arguments)


if __name__ == "__main__":
    sys.exit(main())
