"""The list of mutants fits the code: each changes one place, and its tests exist. `nox -s mutants` runs them."""

import importlib.util
import sys
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parents[1] / "mutants" / "mutants.py"
_SPEC = importlib.util.spec_from_file_location("klaw_mutants", _PROGRAM)
mutants = importlib.util.module_from_spec(_SPEC)
sys.modules["klaw_mutants"] = mutants
_SPEC.loader.exec_module(mutants)


def test_every_mutant_changes_one_place_and_names_tests_that_exist():
    listed = mutants.load()
    assert len(listed) >= 60
    assert {mutant.name: found for mutant in listed if (found := mutant.problems())} == {}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"file": "klaw_core/nothing.py"}, "there is no file"),
        ({"old": "no such text"}, "occurs 0 times"),
        ({"old": "self"}, "times in"),
        ({"new": "if ("}, "not valid Python"),
        ({"new": "if flush:"}, "the new text is the old text"),
        ({"tests": ("tests/unit/test_nothing.py",)}, "there is no test"),
        ({"tests": ("tests/unit/test_files.py::test_nothing",)}, "there is no test"),
        ({"tests": ()}, "no test is named"),
    ],
)
def test_a_mutant_that_fits_nothing_is_named(change, problem):
    sound = {
        "name": "x",
        "file": "plugins/klaw-journals/src/klaw_journals/rewriting.py",
        "old": "if flush:",
        "new": "if False:",
        "tests": ("tests/unit/test_files.py::TestLocks::test_threads_take_turns[a]",),
    }
    assert mutants.Mutant(**sound).problems() == []
    assert any(problem in found for found in mutants.Mutant(**{**sound, **change}).problems())
