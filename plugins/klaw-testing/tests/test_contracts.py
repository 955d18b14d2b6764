"""The contracts of sources and retrievers refuse what is wrong, and accept the examples of the pages."""

import ast
import inspect
import pkgutil
import re
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

import klaw_testing
from klaw_core import Document, Entry, Forgetful, Forgettable, SkippedEntry, Source
from klaw_testing.retriever import RetrieverContract, crowded
from klaw_testing.source import SourceContract

HOOKS = Path(__file__).parents[3] / "docs" / "reference" / "hooks.md"


class Tasks(Source, Forgettable, Forgetful):
    """Three tasks, and which of them were forgotten."""

    origin = "tasks"

    def __init__(self):
        self.gone = set()

    def scan(self):
        return [Entry(path) for path in ("tasks/1", "tasks/2", "tasks/3") if path not in self.gone]

    def read(self, entry, /):
        if entry not in self.scan():
            return SkippedEntry(entry.path, "is not there", keep=False)
        return Document(entry.path, "Paint the hull.", "tasks", "tasks", datetime(2026, 2, 1, tzinfo=UTC))

    def forget(self, paths, /):
        self.gone |= set(paths)

    def forgotten(self, paths, /):
        return [path for path in paths if path in self.gone]


class TestTasks(SourceContract):
    @pytest.fixture
    def source(self):
        return Tasks()


class Forgetless(Tasks):
    def forget(self, paths, /):
        pass


class TooMuch(Tasks):
    def forget(self, paths, /):
        self.gone |= {"tasks/1", "tasks/2", *paths}


class Silent(Tasks):
    def forgotten(self, paths, /):
        return paths[:0]


@pytest.mark.parametrize("wrong", [Forgetless, TooMuch, Silent])
def test_a_source_that_forgets_nothing_or_too_much_breaks_its_contract(wrong):
    with pytest.raises(AssertionError):
        SourceContract().test_a_forgotten_document_is_not_found_again(wrong())


def test_a_stamp_that_is_a_method_breaks_the_contract():
    class Stamped(Tasks):
        def stamp(self):
            return "1"

    with pytest.raises(AssertionError, match="make stamp an attribute or a property, not a method"):
        SourceContract().test_what_it_says_of_itself_are_values(Stamped())


class TestThePatternsOfThePage(RetrieverContract):
    @pytest.fixture
    def retriever(self):
        (block,) = [
            block
            for block in re.findall(r"^```python\n(.*?)^```", HOOKS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
            if "class PatternRetriever" in block
        ]
        names = {}
        exec(block, names)
        return names["PatternRetriever"]()

    @pytest.fixture
    def filled(self, tmp_path):
        with crowded(tmp_path) as resource:
            yield resource

    def query(self, retriever, text, **rest):
        return super().query(retriever, f"/{re.escape(text)}/", **rest)

    def test_another_question_is_not_answered(self, retriever, filled):
        for text in ("harbour", "/(/"):
            assert not retriever.search(filled, RetrieverContract().query(retriever, text), 10)


def undefined_fixtures():
    """Yield the module, the name and the docstring of each fixture that a subclass must define."""
    for info in pkgutil.iter_modules(klaw_testing.__path__):
        source = inspect.getsource(import_module(f"klaw_testing.{info.name}"))
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef) or "raise NotImplementedError" not in ast.unparse(node.body[-1]):
                continue
            if any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield info.name, node.name, ast.get_docstring(node)


def test_a_fixture_that_a_subclass_must_define_says_what_it_is():
    found = [*undefined_fixtures()]
    assert len(found) > 10
    assert [each for each in found if not each[2]] == []
