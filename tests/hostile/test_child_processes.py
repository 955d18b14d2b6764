"""A child process gets only the variables that it needs: a hole in a parser must not read the user's keys."""

import ast
from pathlib import Path

import pytest

import klaw_core
from klaw_redaction.environment import child_environment

ROOT = Path(klaw_core.__file__).parent.parent
_STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"system", "popen", "posix_spawn", "posix_spawnp"}
    | {f"{kind}{form}" for kind in ("exec", "spawn") for form in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe")},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "multiprocessing": {"Process", "Pool"},
}

#: Calls that pass the whole environment on, and why.
ALLOWED = {
    "klaw_core/cli/open.py": "the user's editor, which the user could as well start alone",
    "plugins/klaw-serve/src/klaw_serve/warm/extension.py": "klaw itself, with the same configuration and keys",
    "plugins/klaw-sessions/src/klaw_sessions/command.py": "klaw itself, with the same configuration and keys",
}


def starts():
    """Yield each call in Klaw that starts a process: its file, its line, and the source of its environment."""
    for place in ("klaw_*/**/*.py", "plugins/*/src/**/*.py"):
        for path in ROOT.glob(place):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and _is_start(node.func):
                    environment = next((each.value for each in node.keywords if each.arg == "env"), None)
                    yield path.relative_to(ROOT).as_posix(), node.lineno, environment and ast.unparse(environment)


def _is_start(function):
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr in _STARTS.get(function.value.id, ())
    return isinstance(function, ast.Name) and function.id in {"Popen", "ProcessPoolExecutor"}


def test_every_process_is_started_with_an_environment_of_its_own():
    found = list(starts())
    assert len(found) >= 3
    whole = [f"{file}:{line}" for file, line, environment in found if environment is None and file not in ALLOWED]
    assert not whole, "env=child_environment()"
    assert {file for file, _, environment in found if environment is None} == set(ALLOWED)
    assert not [file for file, _, environment in found if environment and "os.environ" in environment]


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "KLAW_TOKEN", "LANG_KEY", "MY_PATH", "path", "HOME"],
)
def test_a_variable_that_is_not_needed_is_left_out(monkeypatch, name):
    monkeypatch.setenv(name, "s3cret")
    assert "s3cret" not in child_environment().values()
    assert child_environment(name) == {**child_environment(), name: "s3cret"}


@pytest.mark.parametrize("name", ["PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONUTF8", "LD_LIBRARY_PATH", "TZ"])
def test_a_variable_that_is_needed_is_passed_on(monkeypatch, name):
    monkeypatch.setenv(name, "value")
    assert child_environment()[name] == "value"
    assert child_environment(**{name: "other"})[name] == "other"
