"""Build distributions, and install them in environments outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command outside the checkout and return what it printed; fail with all of it."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


#: A program that builds several distributions as their build backend does, without an environment for each.
BUILD = """
import os, sys
from hatchling.build import build_wheel
target, *projects = sys.argv[1:]
for project in projects:
    os.chdir(project)
    build_wheel(target)
"""


def build(target: Path, projects: list[Path]) -> None:
    """Build wheels of some distributions into a directory, in one process."""
    run(sys.executable, "-c", BUILD, target, *projects, cwd=target)


def built_apart(projects: list[Path]) -> list[Path]:
    """Return the projects that need an environment of their own: the first of each build backend, all with a hook."""
    found, seen = [], []
    for project in projects:
        settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
        hooks = settings.get("tool", {}).get("hatch", {}).get("build", {}).get("hooks")
        if hooks or settings["build-system"] not in seen:
            found.append(project)
        seen.append(settings["build-system"])
    return found


def install(
    home: Path, klaw: str, wheels: dict[str, Path], constraints: Path, *others: str | Path, python: str = ""
) -> Path:
    """Install Klaw and other packages in a new environment; return the directory of its programs."""
    run("uv", "venv", "--quiet", *(["--python", python] if python else []), home / "venv", cwd=home)
    programs = home / "venv" / "bin"
    command = ["uv", "pip", "install", "--quiet", "--python", programs / "python", "-c", constraints]
    run(*command, f"{klaw} @ {wheels['klaw'].as_uri()}", *others, cwd=home)
    return programs
