"""Create the files of a new plugin. The templates are the plugins of :mod:`klaw_testing.skeletons`, which work."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from shlex import quote

from klaw_core.plugins.installing import installer_here

_PROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "A {kind} for Klaw: {component}."
requires-python = ">=3.11"
dependencies = [{dependencies}]

[project.entry-points.klaw]
{component} = "{module}"

[project.optional-dependencies]
test = ["klaw[testing]"]
"""


def kinds() -> Sequence[str]:
    """Return the kinds of components, as the command line writes them."""
    modules = (each.name for each in resources.files("klaw_testing.skeletons").iterdir())
    found = (name.removesuffix(".py") for name in modules if name.endswith(".py") and not name.startswith("_"))
    return sorted(name.replace("_", "-") for name in found)


def skeleton(name: str, kind: str) -> Mapping[str, str]:
    """Return the files of a distribution that provides one component: their contents by name."""
    component = name.removeprefix("klaw-")
    module = name.replace("-", "_")
    template = kind.replace("-", "_")
    code, test = (_template(path) for path in (f"{template}.py", f"tests/{template}.py"))
    imported = re.findall(r"^\s*(?:from|import) (attrs|numpy|apsw|klaw_testing)\b", code, re.MULTILINE)
    needed = {"klaw_testing": "klaw[testing]"}
    dependencies = ["klaw", *sorted({needed.get(each, each) for each in imported})]
    project = _PROJECT.format(
        name=name,
        kind=kind.replace("-", " "),
        component=component,
        module=module,
        dependencies=", ".join(f'"{each}"' for each in dependencies),
    )
    files = {"pyproject.toml": project, f"{module}.py": code, f"test_{module}.py": test}
    return {file: _named(text, template, component, module) for file, text in files.items()}


def next_commands(directory: Path) -> Sequence[str]:
    """Return the commands that install a new plugin and run its tests."""
    installer = installer_here()
    place = directory if installer.stays else directory.resolve()
    install = installer.run("install", "-e", quote(str(place)))
    return [install, f"{quote(sys.executable)} -m pytest {quote(str(directory))}"]


def _template(name: str) -> str:
    return resources.files("klaw_testing.skeletons").joinpath(name).read_text("utf-8")


def _named(text: str, template: str, component: str, module: str) -> str:
    text = text.replace(f"klaw_testing.skeletons.{template}", module)
    text = text.replace("Skeleton", "".join(word.capitalize() for word in component.split("-")))
    return text.replace("skeleton_", f"{component.replace('-', '_')}_").replace("skeleton", component)
