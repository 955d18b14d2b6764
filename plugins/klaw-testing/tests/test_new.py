"""``klaw plugins new``: what it writes works, passes its contract, and replaces nothing."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from klaw_core.cli.program import cli
from klaw_core.kinds import KINDS
from klaw_core.plugins.discover import discover
from klaw_testing.skeleton import kinds, next_commands, skeleton

#: The laws have few examples here: the skeletons are the subject, and not the laws.
FEW = """
from hypothesis import settings
settings.register_profile("few", max_examples=1, deadline=None, derandomize=True)
settings.load_profile("few")
"""


@pytest.fixture
def new(tmp_path, monkeypatch):
    """Run ``klaw plugins new`` in a new directory; return what it printed, or its error."""
    monkeypatch.chdir(tmp_path)

    def new(*arguments):
        done = CliRunner().invoke(cli, ["plugins", "new", *arguments], prog_name="klaw")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.stdout if done.exit_code == 0 else done.stderr

    return new


@pytest.fixture
def made(new, tmp_path):
    """Return a function that writes a plugin of a kind and installs it for :data:`sys.path`."""

    def made(kind):
        new(f"klaw-my-{kind}", "--kind", kind)
        project = tmp_path / f"klaw-my-{kind}"
        written = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
        metadata = project / "klaw_to_do-0.1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {written['project']['name']}\nVersion: 0.1.0\n"
        )
        (points,) = written["project"]["entry-points"].items()
        lines = "".join(f"{name} = {value}\n" for name, value in points[1].items())
        (metadata / "entry_points.txt").write_text(f"[{points[0]}]\n{lines}")
        return project

    return made


def test_there_is_a_skeleton_for_every_kind():
    assert kinds() == sorted(kind.replace(" ", "-") for kind in KINDS)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", kinds())
def test_a_skeleton_is_found_as_a_plugin_and_passes_its_contract(kind, made, monkeypatch):
    project = made(kind)
    monkeypatch.syspath_prepend(project)
    (point,) = (each for each in entry_points(group="klaw") if each.name == f"my-{kind}")
    (plugin,) = discover(points=[point]).plugins
    assert not plugin.problem
    assert [item[:2] for item in plugin.components] == [(kind.replace("-", " "), f"my-{kind}")]

    (project / "conftest.py").write_text(FEW)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--rootdir", project, project],
        env={**os.environ, "PYTHONPATH": str(project)},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = int(done.stdout.rpartition(" passed")[0].split()[-1].strip(","))
    assert passed >= 3, done.stdout


@pytest.mark.parametrize("kind", kinds())
def test_the_code_of_a_skeleton_imports_klaw_by_its_one_path_and_has_no_other_name_in_it(kind):
    files = skeleton("klaw-lines", kind)
    assert list(files) == ["pyproject.toml", "klaw_lines.py", "test_klaw_lines.py"]
    assert [name for name, text in files.items() if "skeleton" in text.lower()] == []
    imported = {
        node.module
        for node in ast.parse(files["klaw_lines.py"]).body
        if isinstance(node, ast.ImportFrom) and node.module.startswith("klaw")
    }
    assert imported == {"klaw_core"}


def test_the_files_and_the_next_two_commands_are_printed(new, tmp_path):
    lines = new("klaw-lines", "--kind", "chunker").splitlines()
    assert lines[:3] == [f"klaw-lines/{name}" for name in ("pyproject.toml", "klaw_lines.py", "test_klaw_lines.py")]
    assert [line.removeprefix("next: ") for line in lines[3:]] == list(next_commands(Path("klaw-lines")))
    assert json.loads(new("klaw-rows", "--kind", "source", "--json")) == {
        "directory": "klaw-rows",
        "files": ["pyproject.toml", "klaw_rows.py", "test_klaw_rows.py"],
        "next": list(next_commands(Path("klaw-rows"))),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["klaw-lines", "klaw-rows"]


@pytest.mark.parametrize("there", ["a directory", "a file", "a link"])
def test_what_is_there_stays_as_it_is(new, tmp_path, there):
    place = tmp_path / "klaw-lines"
    if there == "a directory":
        place.mkdir()
    elif there == "a file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    assert (
        new("klaw-lines", "--kind", "chunker")
        == "klaw: the directory klaw-lines already exists → choose another name\n"
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["klaw-lines"]


@pytest.mark.parametrize("name", ["Lines", "klaw_lines", "../lines", "1-line", "a--b", "lines-", "klaw lines"])
def test_a_name_that_no_distribution_can_have_is_refused(new, tmp_path, name):
    assert "invalid value for 'NAME': use lower-case letters" in new(name, "--kind", "chunker")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"), [("json", "an installed package"), ("klaw", "an installed"), ("import", "Python")]
)
def test_a_name_that_would_hide_a_module_or_cannot_be_imported_is_refused(new, tmp_path, name, why):
    said = new(name, "--kind", "chunker")
    assert why in said
    assert "choose another name" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_named(new, tmp_path):
    tmp_path.chmod(0o500)
    assert "klaw-lines cannot be written: Permission denied" in new("klaw-lines", "--kind", "chunker")
    tmp_path.chmod(0o700)


DIRECTORY = {
    "pip": "{python} -m pip install -e mine",
    "uv": "uv pip install -p {python} -e mine",
    "pipx": "pipx runpip {name} install -e {here}/mine",
}


@pytest.mark.parametrize("installer", DIRECTORY)
def test_the_command_that_installs_fits_what_made_the_environment(installer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("klaw_core.plugins.installing._read", lambda _name, _file: installer)
    monkeypatch.setattr("klaw_core.plugins.installing.which", str)
    monkeypatch.setattr("klaw_core.plugins.installing.find_spec", str)
    if installer == "pipx":
        (tmp_path / "pipx_metadata.json").write_text("{}")
    names = {"python": sys.executable, "name": tmp_path.name, "here": tmp_path}
    assert next_commands(Path("mine"))[0] == DIRECTORY[installer].format(**names)
