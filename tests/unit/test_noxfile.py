"""``python3 noxfile.py`` runs every check, shows what each has printed in one piece, and is red if one is."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Stands for nox: it writes down the session, prints two lines, and fails as it is told.
NOX = """
import os, sys
assert sys.argv[1] == "-s"
name = sys.argv[2]
with open(os.environ["RUN"], "a") as file:
    file.write(name + chr(10))
for part in ("first", "last"):
    print(part, name, flush=True)
sys.exit(name in os.environ["FAILING"].split())
"""


@pytest.fixture
def run(tmp_path, capfd):
    """Run the checks with a nox that only prints; return the exit code, the sessions, and what was printed."""
    head, found, _ = (ROOT / "noxfile.py").read_text("utf-8").partition('\nif __name__ == "__main__":')
    assert found
    namespace = {"__file__": str(ROOT / "noxfile.py"), "__name__": "noxfile"}
    exec(compile(head, "noxfile.py", "exec"), namespace)
    (tmp_path / "nox.py").write_text(NOX)

    def run(failing=""):
        environment = {**os.environ, "RUN": str(tmp_path / "run"), "FAILING": failing}
        code = namespace["run_checks"]([sys.executable, str(tmp_path / "nox.py")], environment)
        return code, (tmp_path / "run").read_text().split(), capfd.readouterr().out

    return run


def test_every_check_runs_once_and_shows_its_output_in_one_piece(run):
    code, sessions, out = run()
    assert code == 0
    wanted = ["agents", "browser", "docs", "frameworks", "lint", "packaging", "tests", "types", "typescript"]
    assert sorted(sessions) == wanted
    for name in sessions:
        assert f"first {name}\nlast {name}\n{name}: passed in " in out
    assert out.endswith("every check has passed\n")


@pytest.mark.parametrize("failing", ["tests", "browser", "docs lint"])
def test_a_check_that_fails_ends_no_other_and_makes_the_run_red(run, failing):
    code, sessions, out = run(failing)
    assert code == 1
    assert len(sessions) == 9
    assert set(out.rpartition("failed: ")[2].replace(",", "").split()) == set(failing.split())
