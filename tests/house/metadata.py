"""Keep what all distributions share the same in all of them: python tests/house/metadata.py [--write].

The version is written once, in the ``pyproject.toml`` of the core. Each plugin has the same one, and bounds for every
other distribution of Klaw that it needs: one that was not released with it may not understand it. Each has a copy of
the licence, because a source distribution cannot contain a link out of its directory. The lists of distributions in
``pyproject.toml`` and ``constraints.txt`` are complete, and the extras and the rules of imports there name no plugin
that was deleted. Files and not a hook of the build say all this, so that a source distribution can be built anywhere.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECTS = (ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")))
#: What each plugin has like the core, in the order of the file.
SHARED = ("version", "requires-python", "license", "license-files")
#: A library of the tests of plugins, which no distribution needs.
_FOR_TESTS = {"klaw-testing"}


def bounds(version: str) -> str:
    """Return the versions that may be mixed with this one: up to the next that may break something."""
    major, minor, *_ = map(int, version.split("."))
    return f">={version},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def names() -> list[str]:
    """Return the names of all plugins."""
    return [project.name for project in PROJECTS[1:]]


def others() -> list[str]:
    """Return the directories of plugins of other programs, which are no distributions: uv must not build them."""
    found = (path.parent for path in (ROOT / "plugins").glob("*/README.md"))
    return sorted(f"plugins/{path.name}" for path in found if not (path / "pyproject.toml").exists())


def _bounded(text: str, version: str) -> str:
    """Return a file with the bounds of every requirement of another distribution of Klaw."""
    own = "|".join(map(re.escape, (*names(), "klaw")))
    requirement = rf'(?<!name = )"({own})((?:\[[\w,-]+\])?)(?:[<>=!~][^";]*)?"(?=[,\]\s])'
    return re.sub(requirement, rf'"\1\2{bounds(version)}"', text)


def _without_deleted(text: str) -> str:
    """Return the ``pyproject.toml`` of the core without the extras and the rules of imports of deleted plugins."""
    head, extras, rest = text.partition("[project.optional-dependencies]\n")
    listed, others = rest.split("\n\n", 1)
    listed = re.sub(r'"([\w-]+)[^"]*"(?:, )?', lambda found: found[0] if found[1] in names() else "", listed)
    listed = re.sub(r"(?m)^.* = \[\]\n?", "", listed.replace(", ]", "]"))
    others, rules, imports = others.partition("[tool.importlinter]\n")
    kept = [line for line in imports.splitlines(keepends=True) if not _names_deleted(line)]
    return f"{head}{extras}{listed}\n\n{others}{rules}{''.join(kept)}"


def _listed(text: str) -> str:
    """Return the ``pyproject.toml`` of the core with all plugins in each list of them, in the order of their names.

    The last one lists those that are independent: all but the libraries, which others need.
    """
    needed = re.findall(
        r'"([\w-]+)[^"]*"', "".join(_field("dependencies", _read(project)) or "" for project in PROJECTS[1:])
    )
    everything = [name.replace("-", "_") for name in names()]
    independent = [name.replace("-", "_") for name in names() if name not in {*needed, *_FOR_TESTS}]

    def whole(found: re.Match[str]) -> str:
        contract = text[: found.start()].rpartition("[[tool.importlinter.contracts]]")[2]
        chosen = independent if 'type = "independence"' in contract else everything
        return "".join(f'    "{name}",\n' for name in chosen)

    return re.sub(r'(?:^    "(?:klaw_(?!core"|redaction")\w+|langchain_klaw)",\n)+', whole, text, flags=re.MULTILINE)


def _read(project: Path) -> str:
    return (project / "pyproject.toml").read_text("utf-8")


def _names_deleted(line: str) -> bool:
    found = re.findall(r"\b(?:klaw_(?!core\b|redaction\b)\w+|langchain_klaw)", line.partition("#")[0])
    return any(name.replace("_", "-") not in names() for name in found)


def _shared(text: str, core: str) -> str:
    """Return the file of a plugin with what it has like the core."""
    for name in SHARED:
        line = _field(name, core)
        if line is None:
            raise SystemExit(f"pyproject.toml has no {name}")
        old = _field(name, text)
        if old is not None:
            text = text.replace(old, line, 1)
        else:
            before = _field("dependencies", text)
            if before is None:
                raise SystemExit("a pyproject.toml without dependencies")
            text = text.replace(before, line + before, 1)
    return text


def _field(name: str, text: str) -> str | None:
    """Return the lines of a field of ``[project]``, with the last line break."""
    project = text[text.index("[project]") :]
    found = re.search(rf"(?m)^{name} = (?:\[\n(?:(?:    .*)?\n)*?\]|.*)\n", project)
    return None if found is None else found[0]


def written() -> Iterator[tuple[Path, str]]:
    """Yield each file, with the content that it should have."""
    core = _without_deleted((ROOT / "pyproject.toml").read_text("utf-8"))
    licence = (ROOT / "LICENSE").read_text("utf-8")
    version = tomllib.loads(core)["project"]["version"]
    sources = "".join(f"{name} = {{ workspace = true }}\n" for name in ("klaw", *names()))
    head, _, rest = core.partition("[tool.uv.sources]\n")
    start = head.index("dependencies = [")
    head = head[:start] + _bounded(head[start:], version)
    head = re.sub(r"(?m)^exclude = \[.*?\]", f"exclude = {json.dumps(others())}", head)
    rest = re.sub(r"\A(?:[\w-]+ = \{ workspace = true \}\n)+", sources, rest)
    yield ROOT / "pyproject.toml", _listed(f"{head}[tool.uv.sources]\n{rest}")
    for project in PROJECTS[1:]:
        text = (project / "pyproject.toml").read_text("utf-8")
        if re.search(r'"klaw[\w-]*\[', _field("dependencies", text) or ""):
            raise SystemExit(f"{project.name}: pip 24 does not find what is required with an extra in a clone")
        head, _, rest = text.partition("[project]")
        body, sep, tools = rest.partition("\n[tool.")
        yield project / "LICENSE", licence
        yield project / "pyproject.toml", _shared(f"{head}[project]{_bounded(body, version)}{sep}{tools}", core)
    described = ROOT / "plugins" / "klaw-mcp" / "server.json"  # for the registry of MCP servers
    if described.exists():
        text = described.read_text("utf-8")
        yield described, re.sub(r'("version": "|==)[\d.]+"', rf'\g<1>{version}"', text)
    first, *_ = (ROOT / "constraints.txt").read_text("utf-8").splitlines(keepends=True)
    # Without the dot, pip 25 takes `klaw-x` for a name and a version, and installs the wheel that it built first.
    places = "".join(f"{name} @ file://${{PWD}}/plugins/{name}/.\n" for name in names())
    yield ROOT / "constraints.txt", first + places


def main() -> int:
    """Write the files, or name those that differ; return the exit code."""
    differing = [(path, text) for path, text in written() if not path.exists() or path.read_text("utf-8") != text]
    if "--write" in sys.argv[1:]:
        for path, text in differing:
            path.write_text(text, "utf-8")
        return 0
    for path, _ in differing:
        print(f"{path.relative_to(ROOT)}: python tests/house/metadata.py --write")  # noqa: T201  # a program's output
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
