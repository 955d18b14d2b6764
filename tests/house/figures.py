"""Measure the size of the core, and fail if a figure has grown: python tests/house/figures.py [--write].

The limits are in ``figures.json`` beside this file. A figure may only fall; ``--write`` stores the lower ones. What
each figure counts:

- lines: of ``klaw_core`` without the command line (``cli``), with docstrings;
- protocols, optional_protocols: classes that inherit ``typing.Protocol``, and those that ``isinstance`` can ask;
- public_names: of ``klaw_core.__all__``;
- arrows: pairs of rooms (the packages and modules directly below ``klaw_core``) of which one imports the other;
- distributions: the core and the packages below ``plugins``. It may grow to its limit, as features leave the core.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = Path(__file__).with_name("figures.json")
_BESIDE = {"cli"}


def modules(core: Path) -> Iterator[tuple[str, str]]:
    """Yield the room and the source of each module of the core itself."""
    for path in sorted(core.rglob("*.py")):
        parts = path.relative_to(core).with_suffix("").parts
        if parts[0] not in _BESIDE:
            yield parts[0], path.read_text("utf-8")


def _is_protocol(node: ast.ClassDef) -> bool:
    names = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(isinstance(name, ast.Name) and name.id == "Protocol" for name in names)


def _imported_rooms(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("klaw_core."):
        yield node.module.split(".")[1]


def measure(root: Path) -> dict[str, int]:
    """Return the figures of a checkout."""
    lines = protocols = optional = 0
    arrows: set[tuple[str, str]] = set()
    for room, text in modules(root / "klaw_core"):
        lines += text.count("\n")
        for node in ast.walk(ast.parse(text)):
            arrows |= {(room, other) for other in _imported_rooms(node) if other != room}
            if isinstance(node, ast.ClassDef) and _is_protocol(node):
                protocols += 1
                optional += any(ast.unparse(each).endswith("runtime_checkable") for each in node.decorator_list)
    stub = ast.parse((root / "klaw_core" / "__init__.pyi").read_text("utf-8"))
    (names,) = (
        node.value for node in stub.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {
        "lines": lines,
        "protocols": protocols,
        "optional_protocols": optional,
        "public_names": len(ast.literal_eval(names)),
        "arrows": len(arrows),
        "distributions": 1 + len(list(root.glob("plugins/*/pyproject.toml"))),
    }


def main(arguments: list[str]) -> int:
    """Compare the figures with their limits; return 1 if one is larger."""
    limits = json.loads(LIMITS.read_text("utf-8"))
    found = measure(ROOT)
    grown = {name for name, value in found.items() if value > limits[name]}
    for name, value in found.items():
        sign = ">" if name in grown else "<" if value < limits[name] else "="
        print(f"{name:>20} {value:>7,} {sign} {limits[name]:,}")  # noqa: T201  # a program's output
    if "--write" in arguments:
        lower = {name: min(value, limits[name]) for name, value in found.items() if name != "distributions"}
        lower = {**lower, "distributions": limits["distributions"]}
        LIMITS.write_text(json.dumps(lower, indent=4) + "\n", "utf-8")
    if grown:
        print(f"the core has grown: {', '.join(sorted(grown))}")  # noqa: T201  # a program's output
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
