"""Third-party plugins as a user has them: real distributions beside the real ones, good, broken and contradictory."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from building import ROOT, build, install

FAKES = Path(__file__).parent / "fakes"
TUTORIAL = ROOT / "docs" / "tutorial" / "write-an-embedder.md"


@pytest.fixture(scope="session")
def installed(wheels, constraints, tmp_path_factory) -> Path:
    """Install the core, the plugins of its default configuration and every fake; return the directory of programs."""
    home = tmp_path_factory.mktemp("fakes")
    build(home, sorted(path.parent for path in FAKES.glob("*/pyproject.toml")))
    real = (f"klaw-{name}" for name in ("store-sqlitevec", "fts5", "notes", "doctor", "testing", "tools"))
    return install(home, "klaw[testing]", wheels, constraints, *real, *home.glob("*.whl"))


@pytest.fixture
def klaw(installed, tmp_path):
    """Return a function that runs klaw with a data directory of its own."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bees.md").write_text("# Bees\n\nHives are opened in April.\n")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        places = {"KLAW_DATA_DIR": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
        return subprocess.run(
            [installed / "klaw", *arguments],
            cwd=tmp_path,
            env={**os.environ, **places, "NO_COLOR": "1", "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_plugin_that_breaks_never_stops_klaw_and_is_shown_with_its_reason(klaw):
    done = klaw("plugins", "--json")
    assert done.returncode == 0, done.stderr
    plugins = {plugin["distribution"]: plugin for plugin in json.loads(done.stdout)}
    assert plugins["klaw-hello"]["problem"] == ""
    for name in ("klaw-broken", "klaw-raises", "klaw-future"):
        assert plugins[name]["problem"], name
    assert "99" in plugins["klaw-future"]["problem"]


def test_the_embedder_is_swapped_by_configuration_alone(klaw):
    assert klaw("index", "notes", KLAW_EMBEDDER="hashing").returncode == 0
    done = klaw("search", "--json", "--mode", "vector", "hives", KLAW_EMBEDDER="hashing")
    assert json.loads(done.stdout)[0]["path"] == "notes/bees.md"


@pytest.mark.parametrize(
    ("embedder", "says"),
    [
        ("twin", ["klaw-twin-a", "klaw-twin-b", "plugins.disabled"]),
        ("future", ["API 99"]),
        ("hashin", ["did you mean 'hashing'"]),
        ("onnx", ["uv pip install ", "onnx,minilm"]),
    ],
)
def test_what_cannot_be_used_says_why_in_one_line(klaw, embedder, says):
    done = klaw("index", "notes", KLAW_EMBEDDER=embedder)
    assert done.returncode == 0, "words are indexed without an embedder"
    assert "Traceback" not in done.stderr
    for words in says:
        assert words in done.stderr
    found = klaw("search", "--json", "--mode", "fts", "hives", KLAW_EMBEDDER=embedder)
    assert json.loads(found.stdout)[0]["path"] == "notes/bees.md"


def test_two_providers_of_a_name_are_no_error_while_it_is_not_used(klaw):
    assert klaw("index", "notes", KLAW_EMBEDDER="hashing").returncode == 0


def test_a_disabled_plugin_is_not_loaded(klaw):
    done = klaw("index", "notes", KLAW_EMBEDDER="twin", KLAW_DISABLE_PLUGINS="klaw-twin-b")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["klaw-hello", "klaw-diary"])
def test_a_plugins_own_tests_pass_where_it_is_installed(installed, name):
    tests = FAKES / name / f"test_{name.replace('-', '_')}.py"
    done = subprocess.run(
        [installed / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tests.parent, tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=tests.parent,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_files_of_the_tutorials_page_make_a_plugin_and_a_test_that_passes(wheels, constraints, tmp_path):
    code, tests = (block for block in blocks("python") if "@hookimpl" in block or "import pytest" in block)
    project = tmp_path / "hello"
    project.mkdir()
    (project / "klaw_hello.py").write_text(code)
    (project / "test_klaw_hello.py").write_text(tests)
    (project / "pyproject.toml").write_text(next(block for block in blocks("toml") if "[project]" in block))
    programs = install(tmp_path, "klaw[testing]", wheels, constraints, "klaw-testing", "-e", project)
    listed = subprocess.run([programs / "klaw", "plugins"], capture_output=True, text=True, check=True).stdout
    assert "hashing" in listed
    run = [programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=project)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def blocks(language: str) -> list[str]:
    """Return the blocks of the tutorial's page that a reader copies."""
    return re.findall(rf"^```{language}\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.DOTALL | re.MULTILINE)
