"""A checkout without a plugin installs, checks and tests the rest; a test says by its imports what it needs."""

import ast
import importlib
import sys
from pathlib import Path

import pytest
from checkout import installable, is_here, left_out, with_requirements
from features import PAGES, absent, missing

from klaw_core.errors import PluginNotFoundError
from klaw_core.plugins.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
FEATURES = ("klaw_conversations", "klaw_facts", "klaw_notes", "klaw_sessions")


@pytest.fixture
def tree(tmp_path):
    """A checkout in which three plugins need each other in a row, and one needs a plugin that is not there."""
    for name, needs in {"klaw-a": "", "klaw-b": "klaw-a>=1", "klaw-c": "klaw-b", "klaw-facts": "klaw-gone"}.items():
        (tmp_path / "plugins" / name).mkdir(parents=True)
        text = f'[project]\nname = "{name}"\ndependencies = ["klaw>=1", "attrs", "{needs or "numpy"}"]\n'
        (tmp_path / "plugins" / name / "pyproject.toml").write_text(text)
    return tmp_path


def test_a_plugin_that_needs_a_deleted_one_is_left_out(tree):
    assert [path.name for path in installable(tree)] == ["klaw-a", "klaw-b", "klaw-c"]
    assert left_out(tree) == {"klaw-facts": {"klaw-gone"}}
    assert "klaw-facts" in absent(tree)
    assert is_here(tree, "klaw_core/memory.py")
    assert is_here(tree, "plugins/klaw-a/src/x.py")
    assert not is_here(tree, "plugins/klaw-facts/src/x.py")


def test_a_list_of_plugins_brings_what_they_need(tree):
    assert [path.name for path in with_requirements(tree, ["klaw-b>=1", "klaw-gone"])] == ["klaw-a", "klaw-b"]


@pytest.fixture
def _without_facts(monkeypatch):
    monkeypatch.setattr("features.absent", lambda: frozenset({"klaw-facts"}))


@pytest.mark.usefixtures("_without_facts")
def test_a_test_that_imports_an_absent_feature_is_skipped_but_not_the_code_that_it_tests(monkeypatch):
    monkeypatch.setitem(sys.modules, "klaw_facts", None)
    with pytest.raises(ModuleNotFoundError) as own:
        importlib.import_module("klaw_facts")
    assert missing(own.value) == "needs klaw-facts, which is not in this checkout"
    with pytest.raises(ModuleNotFoundError) as other:
        importlib.import_module("klaw_fatcs")
    assert missing(other.value) is None
    with pytest.raises(ModuleNotFoundError) as tested:
        exec(compile("import klaw_facts", ROOT / "klaw_core" / "memory.py", "exec"), {})
    assert missing(tested.value) is None


@pytest.mark.usefixtures("_without_facts")
def test_an_error_of_a_plugin_that_the_test_did_not_ask_for_is_no_reason_to_skip():
    with pytest.raises(PluginNotFoundError) as caught:
        raise PluginNotFoundError("extension 'facts' is not installed", extras=("facts",))
    assert missing(caught.value) is None


def test_marks_name_distributions_that_klaw_knows():
    known = {row.distribution for row in CATALOGUE}
    assert {page for page in PAGES if is_here(ROOT, page) and not (ROOT / page).exists()} == set()
    assert set(PAGES.values()) <= known
    marks = {
        name.value
        for path in files_of_tests()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.needs"
        for name in node.args
    }
    assert marks
    assert marks <= known


def test_no_test_of_a_feature_is_skipped_because_it_cannot_be_imported():
    """importorskip would also skip what the checkout has and a mistake has broken."""
    skipping = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files_of_tests()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip"
        if ast.unparse(node.args[0]).strip("'\"f").startswith(FEATURES)
    ]
    assert skipping == []


def files_of_tests():
    """Return the files of tests."""
    return [*ROOT.glob("tests/**/*.py"), *ROOT.glob("plugins/*/tests/**/*.py")]
