"""An engine's other forms run a third of the laws; which one depends on nothing but the names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[1] / "plugins"
LAWS = "".join(f"    def test_law_{number}(self, form):\n        pass\n\n" for number in range(30))
TESTS = f"""
import pytest

another = pytest.mark.another_form

class TestEngine:
    @pytest.fixture(params=["whole", pytest.param("second", marks=another), pytest.param("third", marks=another)])
    def form(self, request):
        pass

{LAWS}
@another
class TestElsewhere(TestEngine):
    @pytest.fixture
    def form(self):
        pass
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Collect the laws of an engine in four forms, with some options; return their names by form."""
    directory = tmp_path_factory.mktemp("forms")
    (directory / "test_engine.py").write_text(TESTS)

    def collect(*arguments):
        command = [sys.executable, "-m", "pytest", "-p", "forms", "--collect-only", "-q", "-c", os.devnull, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(PLUGINS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        laws = {}
        for line in done.stdout.splitlines():
            if "::" in line:
                _, group, law = line.split("::")
                name, _, form = law.rstrip("]").partition("[")
                laws.setdefault((group, form), set()).add(name)
        return laws

    return collect


def test_all_laws_hold_in_one_form_and_a_third_of_them_in_each_other_one(collected):
    laws = collected("--rootdir", ".", ".")
    assert len(laws["TestEngine", "whole"]) == 30
    others = [laws[key] for key in (("TestEngine", "second"), ("TestEngine", "third"), ("TestElsewhere", ""))]
    assert all(3 <= len(names) <= 20 for names in others)
    assert len(set(map(frozenset, others))) > 1, "not the same third in each"
    assert laws == collected("--rootdir", ".", "."), "the choice is the same each time"


@pytest.mark.parametrize(
    "arguments", [("--every-form", "."), ("test_engine.py::TestEngine", "test_engine.py::TestElsewhere")]
)
def test_every_law_runs_in_every_form_if_that_is_asked_for_or_a_test_is_named(collected, arguments):
    laws = collected("--rootdir", ".", *arguments)
    assert len(laws) == 4
    assert {len(names) for names in laws.values()} == {30}
