"""The list of mutants: single changes that break Klaw, and for each the tests that must fail with it."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

from attrs import evolve, frozen

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "plugins"))
from checkout import is_here  # noqa: E402  # of the tests

LIST = Path(__file__).with_name("mutants.toml")


@frozen
class Mutant:
    """One change of one file. Each of ``tests``, a node of pytest or the beginning of one, must fail with it.

    ``promises`` has the ids of the sentences of the documentation that it makes untrue.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    promises: tuple[str, ...] = ()

    def problems(self, root: Path = ROOT) -> list[str]:
        """Return what is stale or wrong in the entry; empty if it can be run."""
        source = root / self.file
        if not source.is_file():
            return [f"there is no file {self.file}"]
        text = source.read_text("utf-8")
        found = []
        if (count := text.count(self.old)) != 1:
            found.append(f"the old text occurs {count} times in {self.file}, not once")
        elif self.file.endswith(".py") and not _is_python(text.replace(self.old, self.new)):
            found.append(f"with the new text, {self.file} is not valid Python")
        if self.old == self.new:
            found.append("the new text is the old text")
        found += [f"there is no test {test}" for test in self.tests if not _exists(root, test)]
        return found if self.tests else [*found, "no test is named"]

    def apply(self, root: Path) -> None:
        """Change the file below ``root``, which is a copy of the checkout."""
        source = root / self.file
        source.write_text(source.read_text("utf-8").replace(self.old, self.new), "utf-8")


def load(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of the list, but those of plugins that were deleted. Raise ValueError if two have one name."""
    entries = tomllib.loads(path.read_text("utf-8"))["mutant"]
    lists = ("tests", "promises")
    mutants = [Mutant(**{**entry, **{name: tuple(entry.get(name, ())) for name in lists}}) for entry in entries]
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two mutants have the name {min(twice)!r}")
    return [
        evolve(mutant, tests=tuple(test for test in mutant.tests if is_here(ROOT, test)))
        for mutant in mutants
        if is_here(ROOT, mutant.file) and any(is_here(ROOT, test) for test in mutant.tests)
    ]


def _is_python(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)  # more than the grammar: `continue` outside of a loop
    except SyntaxError:
        return False
    return True


def _exists(root: Path, test: str) -> bool:
    """Return whether a node's file has its class and its function."""
    file, *names = test.partition("[")[0].split("::")
    if not (root / file).is_file():
        return False
    scope: ast.AST = ast.parse((root / file).read_text("utf-8"))
    for name in names:
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        found = [node for node in ast.iter_child_nodes(scope) if isinstance(node, kinds) and node.name == name]
        if not found:
            return isinstance(scope, ast.ClassDef) and bool(scope.bases) and name in _laws(root)
        scope = found[-1]
    return True


@cache
def _laws(root: Path) -> frozenset[str]:
    """Return the names of the tests that classes inherit: those of the shipped contracts."""
    files = [*root.glob("plugins/klaw-testing/src/klaw_testing/*.py"), *root.glob("plugins/*/src/*/*.py")]
    return frozenset(name for file in files for name in re.findall(r"def (test_\w+)", file.read_text("utf-8")))
