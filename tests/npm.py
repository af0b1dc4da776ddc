"""Packages from npm that tests run: installed once into ``build/``, and run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(__file__).parent.parent / "build"


def installed(*packages: str) -> Path:
    """The folder in which these packages, each with its version, are installed. Skips where they cannot be had."""
    folder = BUILD / "-".join(package.rpartition("/")[2].replace("@", "-") for package in packages)
    if folder.exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not installed, which brings {packages[0]}")
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="npm-") as fresh:
        command = [npm, "install", "--prefix", fresh, "--no-audit", "--no-fund", "--ignore-scripts", *packages]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=300, text=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{packages[0]} cannot be installed: {str(error.stderr or error)[-300:]}")
        if not folder.exists():
            try:
                Path(fresh).rename(folder)
                Path(fresh).mkdir()  # for the context to remove
            except OSError:
                assert folder.exists()  # another process was faster
    return folder


def node(script: str, told: object, *packages: str) -> Any:
    """What a module prints as JSON, which reads ``told`` as JSON from its input and may import the packages."""
    program = shutil.which("node")
    if program is None:
        pytest.skip(f"Node is not installed, which runs {packages[0]}")
    folder = installed(*packages)
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".mjs", encoding="utf-8") as file:
        file.write("const told = JSON.parse((await import('node:fs')).readFileSync(0, 'utf8'));\n" + script)
        file.flush()
        result = subprocess.run(
            [program, file.name], input=json.dumps(told), capture_output=True, encoding="utf-8", timeout=120, check=False
        )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
