"""The commands that install, update, repair and remove packages where Klaw runs: every one that Klaw prints.

A command calls the program that made the environment: pip, pipx, uv, or ``uv tool``; pip if there is no uv. From a
clone it installs that directory and all that is installed of it, because its parts are of one version.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from attrs import frozen

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_KLAW = "klaw"
_ON_KLAW = re.compile(rf"{_KLAW}(?![\w.-])")  # a requirement of Klaw itself


def install_extras(extras: Collection[str]) -> str:
    """Return the command that installs these extras of ``klaw``."""
    return _install_klaw(installer_here(), extras)


def update_command(name: str = _KLAW) -> str:
    """Return the command that updates a distribution; one of a clone is updated with its clone."""
    if _clone(name) is not None:
        return _install_klaw(installer_here(), before="git pull && ")
    return installer_here().upgrade(name)


def reinstall_command(name: str, *, dependencies: bool = True) -> str:
    """Return the command that reinstalls a damaged distribution, with or without its dependencies."""
    return installer_here().reinstall(name, dependencies=dependencies)


def uninstall_command(name: str) -> str:
    """Return the command that removes a distribution."""
    return installer_here().uninstall(name)


@frozen
class _Pip:
    """pip, called by the running Python if a shell would call another one."""

    #: Whether an installation removes what it does not name.
    forgets: ClassVar[bool] = False
    #: Whether it has to be told where the plugins of a clone are.
    constrained: ClassVar[bool] = True
    #: Whether it runs in the directory that it is called in.
    stays: ClassVar[bool] = True

    def run(self, verb: str, *words: str) -> str:
        python = shlex.quote(sys.executable)
        first = "" if find_spec("pip") else f"{python} -m ensurepip && "  # as in an environment of uv
        return " ".join(["pip" if _is_active() and not first else f"{first}{python} -m pip", verb, *words])

    def install(self, klaw: str, *options: str) -> str:
        return self.run("install", *options, klaw)

    def upgrade(self, name: str) -> str:
        return self.run("install", "--upgrade", _requirement(name))

    def reinstall(self, name: str, *, dependencies: bool) -> str:
        if _clone(name) is not None:
            return _install_klaw(self)  # pip always reinstalls directories
        # No index may have the Klaw that a plugin depends on.
        alone = not dependencies or (_clone(_KLAW) is not None and any(map(_ON_KLAW.match, _requires(name))))
        return self.run("install", "--force-reinstall", *(["--no-deps"] if alone else []), _requirement(name))

    def uninstall(self, name: str) -> str:
        return self.run("uninstall", shlex.quote(name))


class _Pipx(_Pip):
    """pip, in an environment of pipx, which runs it elsewhere."""

    stays = False

    def run(self, verb: str, *words: str) -> str:
        return " ".join(["pipx runpip", shlex.quote(Path(sys.prefix).name), verb, *words])


class _Uv(_Pip):
    """``uv pip``, told the running Python if a shell would call another one. It finds a clone's plugins by itself."""

    constrained = False

    def run(self, verb: str, *words: str) -> str:
        return " ".join(["uv pip", verb, *([] if _is_active() else ["-p", shlex.quote(sys.executable)]), *words])

    def reinstall(self, name: str, *, dependencies: bool) -> str:
        options = ("--reinstall-package", shlex.quote(name), *([] if dependencies else ["--no-deps"]))
        if _clone(name) is not None:
            return _install_klaw(self, options=options)
        return self.run("install", *options, _requirement(name))


@frozen
class _UvTool(_Uv):
    """``uv tool install``. ``others`` are the packages beside Klaw, by name, as ``--with`` takes them."""

    forgets = True
    others: tuple[tuple[str, str], ...] = ()

    def install(self, klaw: str, *options: str) -> str:
        kept = [f"--with {shlex.quote(requirement)}" for _name, requirement in self.others]
        return " ".join(["uv tool install", *options, *kept, klaw])

    def upgrade(self, name: str) -> str:
        del name  # all at once
        return f"uv tool upgrade {shlex.quote(Path(sys.prefix).name)}"

    def reinstall(self, name: str, *, dependencies: bool) -> str:
        del dependencies  # no option of `uv tool install`
        return _install_klaw(self, options=("--reinstall-package", shlex.quote(name)))

    def uninstall(self, name: str) -> str:
        return _install_klaw(_UvTool(tuple(each for each in self.others if each[0] != name)))


def installer_here() -> _Pip:
    """Return what made the environment of the running Python; pip instead of a uv that is not there."""
    prefix = Path(sys.prefix)
    if (others := _others_of_tool(prefix / "uv-receipt.toml")) is not None:
        return _UvTool(others)
    if (prefix / "pipx_metadata.json").is_file():
        return _Pipx()
    return _Uv() if _read(_KLAW, "INSTALLER").strip() == "uv" and which("uv") else _Pip()


def _install_klaw(installer: _Pip, extras: Iterable[str] = (), *, options: Iterable[str] = (), before: str = "") -> str:
    """Return the command that installs Klaw from where it came; ``before`` it, another command in its clone."""
    clone = _clone(_KLAW)
    if clone is not None or installer.forgets:
        extras = dict.fromkeys([*_installed_extras(), *extras])
    names = f"[{','.join(extras)}]" if extras else ""
    if clone is None:
        return installer.install(_requirement(_KLAW, names), *options)
    place = "." if installer.stays else str(clone)
    if installer.constrained:
        options = ["-c", shlex.quote(str(Path(place) / "constraints.txt")), *options]
        if (address := quote(str(clone))) != str(clone):  # pip writes PWD into addresses
            before += f"PWD={address} "
    editable = ["-e"] if _origin(_KLAW)["dir_info"].get("editable") else []
    command = installer.install(shlex.quote(place + names), *options, *editable)
    return f"cd {shlex.quote(str(clone))} && {before}{command}"


def _is_active() -> bool:
    """Return whether a shell calls the running Python's programs by their names."""
    return sys.prefix in {os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX")}


def _others_of_tool(receipt: Path) -> tuple[tuple[str, str], ...] | None:
    """Return the packages, by name, that ``uv tool install`` installed beside Klaw; None if it did not install Klaw."""
    import tomllib

    try:
        written = tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]
        requirements = {each["name"]: each for each in written}
        requirements.pop(_KLAW)
        return tuple((name, _as_requirement(each)) for name, each in requirements.items())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _as_requirement(requirement: dict[str, Any]) -> str:
    """Return a requirement in uv's receipt as an argument of ``--with``."""
    if place := next(filter(None, map(requirement.get, ("editable", "directory", "path", "url"))), None):
        return str(place)
    if "git" in requirement:
        return f"{requirement['name']} @ git+{requirement['git']}"
    return f"{requirement['name']}{requirement.get('specifier', '')}"


def _installed_extras() -> list[str]:
    """Return the extras of ``klaw`` that are installed, the largest first, without those that others include."""
    needs = _needs_of_extras(_KLAW)
    kept: list[str] = []
    covered: set[str] = set()
    for extra in sorted(needs, key=lambda extra: -len(needs[extra])):
        if all(map(_is_installed, needs[extra])) and not needs[extra] <= covered:
            kept.append(extra)
            covered |= needs[extra]
    return kept


def _needs_of_extras(name: str) -> dict[str, set[str]]:
    """Return the requirements of each extra of a distribution, without their conditions."""
    needs: dict[str, set[str]] = {}
    for requirement in _requires(name):
        needed, _, condition = requirement.partition(";")
        for extra in re.findall(r"\bextra\s*==\s*[\"']([^\"']+)", condition):
            needs.setdefault(extra, set()).add(needed.strip())
    return needs


def _is_installed(requirement: str) -> bool:
    """Return whether a requirement is there, with its extras; any version will do."""
    found = re.match(r"([\w.-]+)\s*(?:\[([^]]*)])?", requirement)
    if found is None or _distribution(found[1]) is None:
        return False
    needs = _needs_of_extras(found[1]) if found[2] else {}
    return all(_is_installed(each) for extra in (found[2] or "").split(",") for each in needs.get(extra.strip(), ()))


def _requires(name: str) -> list[str]:
    distribution = _distribution(name)
    return (distribution.requires or []) if distribution else []


def _clone(name: str) -> Path | None:
    """Return the clone of Klaw that a distribution was installed from, if it still exists."""
    directory = _directory(name)
    if name == _KLAW or directory is None:
        return directory
    clone = _directory(_KLAW)
    return clone if clone in directory.parents else None


def _requirement(name: str, extras: str = "") -> str:
    """Return the requirement of a distribution: its name, and the directory or repository that it came from."""
    origin = _origin(name)
    info = origin.get("vcs_info")
    if isinstance(info, dict):
        part = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
        return shlex.quote(f"{name}{extras} @ {info.get('vcs', 'git')}+{origin.get('url', '')}{part}")
    return shlex.quote(f"{name}{extras}" if _directory(name) is None else f"{name}{extras} @ {origin['url']}")


def _directory(name: str) -> Path | None:
    """Return the directory that a distribution was installed from, if it still exists."""
    origin = _origin(name)
    url = urlsplit(str(origin.get("url", "")))
    directory = Path(unquote(url.path))
    is_local = url.scheme == "file" and isinstance(origin.get("dir_info"), dict)
    return directory if is_local and (directory / "pyproject.toml").is_file() else None


def _origin(name: str) -> dict[str, Any]:
    """Return the recorded origin of a distribution (PEP 610); empty if it comes from an index."""
    try:
        found = json.loads(_read(name, "direct_url.json") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _read(name: str, file: str) -> str:
    """Return a file of a distribution's metadata; empty if there is none."""
    distribution = _distribution(name)
    try:
        return (distribution.read_text(file) if distribution else None) or ""
    except (OSError, ValueError):
        return ""


def _distribution(name: str) -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and hints are rare

    try:
        return distribution(re.sub(r"[-_.]+", "-", name))
    except (PackageNotFoundError, ValueError):
        return None
