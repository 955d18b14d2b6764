"""A run that executed fewer tests than it collected is red, whatever became of those that it executed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[1] / "plugins"
#: Each of these tests starts a run of pytest, or three.
another = pytest.mark.one_of(2)
TESTS = "import pytest\n\n" + "\n".join(f"def test_{name}():\n    pass\n\n" for name in "abcdef")
#: The worker that has run a test ends, as one that is killed, between two tests or within one.
LOST = {
    "between": "def pytest_runtest_logfinish():\n    if 'PYTEST_XDIST_WORKER' in os.environ:\n        os._exit(0)\n",
    "within": "def pytest_runtest_call(item):\n    os.kill(os.getpid(), 9)\n",
}


def run(directory, *options, conftest="", tests=TESTS):
    """Run pytest with nothing of Klaw's but the plugin; return its exit status and what it printed."""
    (directory / "conftest.py").write_text(f"import os\n\n{conftest}")
    (directory / "test_letters.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "executed", "--rootdir", ".", "-c", os.devnull, *options, "."]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**kept, "PYTHONPATH": str(PLUGINS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


PARALLEL = ("-p", "xdist", "-n", "2", "--dist", "loadfile", "--max-worker-restart=0")


@another
@pytest.mark.parametrize("moment", LOST)
def test_a_run_that_lost_a_worker_is_red_and_names_what_is_missing(tmp_path, moment):
    code, printed = run(tmp_path, *PARALLEL, conftest=LOST[moment])
    assert code == 1
    assert "collected 6, executed 1, missing 5: test_letters.py::test_b, " in printed


def test_a_run_that_dropped_tests_is_red_though_all_that_ran_passed(tmp_path):
    dropping = "def pytest_runtestloop(session):\n    del session.items[2:]\n"
    code, printed = run(tmp_path, conftest=dropping)
    assert code == 1
    assert "collected 6, executed 2, missing 4: test_letters.py::test_c, " in printed
    assert "2 passed" in printed


def test_many_missing_tests_are_counted(tmp_path):
    tests = "import pytest\n\n@pytest.mark.parametrize('n', range(50))\ndef test(n):\n    pass\n"
    code, printed = run(tmp_path, conftest="def pytest_runtestloop(session):\n    del session.items[:]\n", tests=tests)
    assert code == 1
    assert "collected 50, executed 0, missing 50: " in printed
    assert "test[19], and 30 more" in printed


@another
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), "collected 6, executed 6\n"),
        (PARALLEL, "collected 6, executed 6\n"),
        (("-k", "test_c or test_d"), "collected 2, executed 2\n"),
        (("--deselect", "test_letters.py::test_a"), "collected 5, executed 5\n"),
    ],
    ids=["all", "in parallel", "-k", "--deselect"],
)
def test_a_run_that_executed_what_it_collected_says_so(tmp_path, options, shown):
    code, printed = run(tmp_path, *options)
    assert code == 0
    assert shown in printed


def test_a_failed_run_that_executed_everything_is_judged_by_its_failures(tmp_path):
    code, printed = run(tmp_path, tests=TESTS + "def test_g():\n    assert False\n")
    assert code == 1
    assert "collected 7, executed 7\n" in printed
    code, printed = run(tmp_path, "--lf", tests=TESTS + "def test_g():\n    assert True\n")
    assert code == 0
    assert "collected 1, executed 1\n" in printed


@another
@pytest.mark.parametrize(
    "options", [("-x",), ("--maxfail=1",), (*PARALLEL, "-x"), ("--stepwise",), ("--collect-only",)], ids=" ".join
)
def test_a_run_that_was_to_stop_early_or_to_run_nothing_is_not_judged(tmp_path, options):
    failing = TESTS.replace("def test_b():\n    pass", "def test_b():\n    assert False")
    _, printed = run(tmp_path, *options, tests=failing)
    assert "executed" not in printed
    assert "missing" not in printed
