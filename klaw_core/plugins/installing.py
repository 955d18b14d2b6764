"""The commands that install, update and repair Klaw's own packages in the current environment.

If Klaw was installed from a clone, the commands install from that directory, because the names may be unregistered or
belong to another project on a public index.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import frozen

_KLAW = "klaw"


@frozen
class _Checkout:
    """The directory that a distribution was installed from."""

    directory: Path
    editable: bool

    def install(self, extras: str = "", *options: str) -> str:
        """Return the command that installs it into the running Python's environment."""
        tool = _Tool.here()
        if tool is not None:
            return tool.install(extras, *options)
        active = os.environ.get("VIRTUAL_ENV", "") == sys.prefix
        words = ["uv pip install", *([] if active else ["-p", shlex.quote(sys.executable)]), *options]
        return " ".join([*words, *(["-e"] if self.editable else []), shlex.quote(f"{self.directory}{extras}")])


@frozen
class _Tool:
    """The arguments of the last ``uv tool install``. The next call removes packages that it does not name."""

    directory: str
    editable: bool
    extras: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def here(cls) -> _Tool | None:
        """Return the arguments for the current environment; None if it was not made by ``uv tool``."""
        import tomllib

        try:
            text = (Path(sys.prefix) / "uv-receipt.toml").read_text("utf-8")
            requirements = {each["name"]: each for each in tomllib.loads(text)["tool"]["requirements"]}
            own = requirements.pop(_KLAW)
            editable = "editable" in own
            others = tuple(map(_as_requirement, requirements.values()))
            return cls(own["editable" if editable else "directory"], editable, tuple(own.get("extras", ())), others)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def install(self, extras: str, *options: str) -> str:
        """Return the command that keeps the installed packages and adds these extras and options."""
        wanted = ",".join(dict.fromkeys([*self.extras, *filter(None, extras.strip("[]").split(","))]))
        others = (f"--with {shlex.quote(other)}" for other in self.others)
        known = [option for option in options if option != "--no-deps"]  # not an option of `uv tool install`
        words = ["uv tool install", *known, *others, *(["-e"] if self.editable else [])]
        return " ".join([*words, shlex.quote(f"{self.directory}[{wanted}]" if wanted else self.directory)])


def _as_requirement(requirement: dict[str, Any]) -> str:
    """Return a requirement in uv's receipt as an argument of ``--with``."""
    if place := next(filter(None, map(requirement.get, ("editable", "directory", "path", "url"))), None):
        return str(place)
    if "git" in requirement:
        return f"{requirement['name']} @ git+{requirement['git']}"
    return f"{requirement['name']}{requirement.get('specifier', '')}"


def install_extras(extras: Collection[str]) -> str:
    """Return the command that installs these extras of ``klaw``."""
    wanted = f"[{','.join(extras)}]"
    checkout = _checkout(_KLAW)
    if checkout is not None:
        return checkout.install(wanted)
    return f"pip install {_requirement(_KLAW, wanted)}"


def update_command(name: str = _KLAW) -> str:
    """Return the command that updates a distribution."""
    checkout = _checkout(name)
    if checkout is not None:
        return f"cd {shlex.quote(str(checkout.directory))} && git pull && {checkout.install()}"
    return f"pip install --upgrade {_requirement(name)}"


def reinstall_command(name: str, *, dependencies: bool = True) -> str:
    """Return the command that reinstalls a damaged distribution, with or without its dependencies."""
    alone = [] if dependencies else ["--no-deps"]
    checkout = _checkout(name)
    if checkout is not None:
        return checkout.install("", "--reinstall-package", shlex.quote(name), *alone)
    return " ".join(["pip install --force-reinstall", *alone, _requirement(name)])


def _checkout(name: str) -> _Checkout | None:
    """Return the directory that a distribution was installed from, if it still exists."""
    origin = _origin(name)
    url = urlsplit(str(origin.get("url", "")))
    info = origin.get("dir_info")
    if url.scheme != "file" or not isinstance(info, dict):
        return None
    directory = Path(unquote(url.path))
    return _Checkout(directory, bool(info.get("editable"))) if (directory / "pyproject.toml").is_file() else None


def _requirement(name: str, extras: str = "") -> str:
    """Return a requirement for pip: with the repository that the distribution was installed from, or only its name."""
    origin = _origin(name)
    info = origin.get("vcs_info")
    if not isinstance(info, dict):
        return shlex.quote(f"{name}{extras}")
    part = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
    return shlex.quote(f"{name}{extras} @ {info.get('vcs', 'git')}+{origin.get('url', '')}{part}")


def _origin(name: str) -> dict[str, Any]:
    """Return the recorded origin of a distribution (PEP 610); empty if it comes from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and hints are rare

    try:
        text = distribution(re.sub(r"[-_.]+", "-", name)).read_text("direct_url.json")
        found = json.loads(text or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
