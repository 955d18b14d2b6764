"""Campaigns try a sample of their cases by default; which one depends on nothing but the names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[1] / "plugins"
LAWS = "".join(f"    def test_law_{number}(self, form):\n        pass\n\n" for number in range(30))
TESTS = f"""
import pytest

another = pytest.mark.one_of(3)

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


@pytest.fixture
def run(tmp_path):
    """Run pytest on some tests with nothing of Klaw's but the plugin; return what it printed."""

    def run_tests(tests, *arguments):
        (tmp_path / "test_engine.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-p", "campaigns", "--rootdir", ".", "-c", os.devnull, *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = {**kept, "PYTHONPATH": str(PLUGINS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    return run_tests


@pytest.fixture
def collected(run):
    """Collect the laws of an engine in four forms, with some options; return their names by form."""

    def collect(*arguments):
        laws = {}
        for line in run(TESTS, "--collect-only", "-q", *arguments).splitlines():
            if "::" in line:
                _, group, law = line.split("::")
                name, _, form = law.rstrip("]").partition("[")
                laws.setdefault((group, form), set()).add(name)
        return laws

    return collect


def test_all_laws_hold_in_one_form_and_a_third_of_them_in_each_other_one(collected):
    laws = collected()
    assert len(laws["TestEngine", "whole"]) == 30
    others = [laws[key] for key in (("TestEngine", "second"), ("TestEngine", "third"), ("TestElsewhere", ""))]
    assert all(3 <= len(names) <= 20 for names in others)
    assert len(set(map(frozenset, others))) > 1, "not the same third in each"
    assert laws == collected(), "the choice is the same each time"


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "arguments", [("--campaigns", "."), ("test_engine.py::TestEngine", "test_engine.py::TestElsewhere")]
)
def test_all_tests_run_if_that_is_asked_for_or_they_are_named(collected, arguments):
    laws = collected(*arguments)
    assert len(laws) == 4
    assert {len(names) for names in laws.values()} == {30}


COUNTED = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_counts(cases, n):
    for number, dice in cases.seeded("x", 2):
        assert 0 <= dice.random() < 1
    cases.add(5, failed=n == 2)
    assert n < 1

@pytest.mark.one_of(4)
@pytest.mark.parametrize("n", range(20))
def test_many(n):
    pass

def test_whole():
    pass
"""


@pytest.mark.one_of(2)
@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "in a worker"])
def test_a_campaign_ends_with_a_table_of_cases_and_failures(run, options):
    printed = run(COUNTED, "--campaigns", *options)
    rows = [line.split() for line in printed.partition("= campaigns =")[2].splitlines()]
    assert ["3,015", "2", "test_engine.py::test_counts"] in rows
    assert ["20", "0", "test_engine.py::test_many"] in rows
    assert ["3,035", "2", "in", "all"] in rows
    assert "= campaigns =" not in run(COUNTED)


EMPTY = """
import pytest

def test_whole(cases):
    cases.add(1)
    assert cases.every(7) == (1 if cases.whole else 7)
    assert cases.number(3, 20) == (20 if cases.whole else 3)

def test_number(cases):
    assert cases.number(0, 20) in {0, 20}
"""


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("options", "failed"), [((), ["number"]), (("--campaigns",), [])])
def test_an_empty_sample_fails(run, options, failed):
    lines = [line.split()[1] for line in run(EMPTY, "-q", "-rfp", *options).splitlines() if line.startswith("FAILED")]
    assert lines == [f"test_engine.py::test_{name}" for name in failed]


def test_named_tests_are_left_out_if_only_the_sample_may_run(collected):
    named = "test_engine.py::TestEngine"
    laws = collected("--sampled", named, "test_engine.py::TestElsewhere")
    assert laws == collected()


def test_a_share_of_the_tests_is_chosen_by_their_names(collected):
    shares = [collected("--campaigns", "--share", "4") for _ in range(2)]
    assert shares[0] == shares[1]
    assert 10 <= sum(map(len, shares[0].values())) <= 60


def test_what_takes_a_sample_is_marked(run):
    printed = run(COUNTED, "--campaigns", "-m", "campaign", "--collect-only", "-q")
    assert "::test_counts[0]" in printed
    assert printed.count("::test_many[") == 20
    assert "::test_whole" not in printed


LONG = """
import pytest

@pytest.mark.campaign
def test_long():
    pass

@pytest.mark.parametrize("case", ["short", pytest.param("long", marks=pytest.mark.campaign)])
def test_case(case):
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ((), ["case[short]"]),
        (("--campaigns",), ["long", "case[short]", "case[long]"]),
        (("--campaigns", "-m", "campaign"), ["long", "case[long]"]),
        (("test_engine.py::test_long",), ["long"]),
    ],
)
def test_what_takes_long_runs_only_as_a_campaign(run, arguments, chosen):
    lines = run(LONG, "--collect-only", "-q", *arguments).splitlines()
    assert [line.partition("::test_")[2] for line in lines if "::" in line] == chosen
