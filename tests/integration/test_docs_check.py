"""The action and the hook that check documentation: one script, which passes and fails as it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "plugins" / "docs-check"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script needs bash")


@pytest.fixture
def check(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "boat.md").write_text("# Boat\n\nThe boat is red. See [the kiln](kiln.md).\n", "utf-8")
    (tmp_path / "docs" / "kiln.md").write_text("# Kiln\n\nThe kiln is fired at dawn.\n", "utf-8")
    asked = [{"question": "which colour is the boat", "path": "docs/boat.md"}]
    (tmp_path / "asked.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in asked), "utf-8")
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "klaw").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m klaw_core "$@"\n', "utf-8")
    (bin_directory / "klaw").chmod(0o700)

    def run(*arguments, with_klaw=True):
        path = f"{bin_directory}{os.pathsep}/usr/bin{os.pathsep}/bin" if with_klaw else "/usr/bin:/bin"
        environment = {**os.environ, "PATH": path, "KLAW_EMBEDDER": "none", "TMPDIR": str(tmp_path)}
        command = [str(FOLDER / "check.sh"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=300
        )

    return run


def test_it_passes_and_leaves_nothing(check, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    done = check("--docs", "docs", "--questions", "asked.jsonl", "--links")
    assert done.returncode == 0, done.stderr
    assert "any@5" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == before


def test_it_fails_below_a_bar(check, tmp_path):
    with (tmp_path / "asked.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question": "which colour is the boat", "path": "docs/kiln.md"}\n')
    failed = check("--docs", "docs", "--questions", "asked.jsonl", "--fail-under", "mrr=0.9")
    assert failed.returncode == 1
    assert "mrr" in failed.stderr


def test_a_link_to_a_file_outside_of_the_documentation_passes(check, tmp_path):
    (tmp_path / "README.md").write_text("x\n", "utf-8")
    (tmp_path / "docs" / "boat.md").write_text("[a](../README.md) [b](../bin/klaw) [c](../asked.jsonl)\n", "utf-8")
    assert check("--docs", "docs", "--links").returncode == 0
    (tmp_path / "README.md").unlink()
    failed = check("--docs", "docs", "--links")
    assert failed.returncode == 1
    assert "docs/boat.md:1  ../README.md: no such document" in failed.stdout


def test_documentation_that_is_none_is_said(check, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.py").write_text("x\n", "utf-8")
    for given, reason in (
        ("empty", "empty has no notes"),
        ("docs/boat.md", "--docs needs a directory, and docs/boat.md is a file"),
        ("gone", "--docs needs a directory, and gone is not there"),
    ):
        failed = check("--docs", given, "--links")
        assert failed.returncode == 2
        assert f"check.sh: {reason}" in failed.stderr


def test_a_broken_link_fails_if_that_is_asked(check, tmp_path):
    (tmp_path / "docs" / "boat.md").write_text("The boat is red: [gone](gone.md)\n", "utf-8")
    assert check("--docs", "docs", "--questions", "asked.jsonl").returncode == 0
    failed = check("--docs", "docs", "--links")
    assert failed.returncode == 1
    assert "docs/boat.md:1  gone.md: no such document" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "--docs is missing"),
        (("--docs", "docs"), "--questions is missing"),
        (("--docs",), "--docs needs a value"),
        (("--nothing",), "unknown argument --nothing"),
    ],
)
def test_wrong_arguments_are_named(check, arguments, problem):
    done = check(*arguments)
    assert done.returncode == 2
    assert problem in done.stderr


def test_the_action_gives_the_script_every_input():
    action = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
    text = (FOLDER / "action.yml").read_text("utf-8")
    unused = [name for name in action["inputs"] if f"inputs.{name} }}}}" not in text]
    assert unused == []
    assert action["runs"]["using"] == "composite"
    # What a workflow passes is data: no input is part of a command line.
    commands = "\n".join(step.get("run", "") for step in action["runs"]["steps"])
    assert "${{" not in commands
    script = (FOLDER / "check.sh").read_text("utf-8")
    passed = set(re.findall(r"--[a-z-]+", commands)) - {"--quiet"}
    assert passed == {"--docs", "--questions", "--fail-under", "--links", "--config"}
    assert {option for option in passed if not re.search(rf"{option}( \||\))", script)} == set()


def test_the_hook_runs_the_script():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (ROOT / hook["entry"]) == FOLDER / "check.sh"
    assert os.access(ROOT / hook["entry"], os.X_OK)
    assert (hook["language"], hook["pass_filenames"]) == ("script", False)
