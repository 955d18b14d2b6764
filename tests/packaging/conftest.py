"""Wheels of every distribution, which all tests of packaging use and a run builds once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # for building.py

from building import PLUGINS, ROOT, build, built_apart, run


@pytest.fixture(scope="session")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """Build every distribution, unless a directory of wheels is given, and return its wheel by name."""
    given = os.environ.get("KLAW_TEST_WHEELS")
    target = Path(given) if given else tmp_path_factory.mktemp("wheels")
    projects = [] if given else [ROOT, *PLUGINS]
    apart = built_apart(projects)
    for project in apart:
        run("uv", "build", "--quiet", "--wheel", "--out-dir", target, project, cwd=target)
    build(target, [path for path in projects if path not in apart])
    return {path.name.partition("-")[0].replace("_", "-"): path for path in target.glob("*.whl")}


@pytest.fixture(scope="session")
def constraints(wheels, tmp_path_factory) -> Path:
    """Write a file that names each wheel as the source of its distribution."""
    file = tmp_path_factory.mktemp("constraints") / "wheels.txt"
    file.write_text("".join(f"{name} @ {path.as_uri()}\n" for name, path in wheels.items() if name != "klaw"))
    return file
