"""A release takes over the memory of the one before, which then refuses it; and the two cannot be mixed.

The session ``release`` builds both, and says which state of the repository stands for a previous one.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from building import install, run

PREVIOUS = os.environ.get("KLAW_TEST_PREVIOUS")
pytestmark = pytest.mark.skipif(not PREVIOUS, reason="only the session `release` has two releases")
NOTES = {
    "bees.md": "# Bees\n\nHives are opened in April, when the willows bloom.\n",
    "tax.md": "# Tax\n\nThe form is due on the last day of May.\n",
}
SAY = """
from datetime import UTC, datetime
from klaw_core import Chat, Memory, Message
with Memory.open() as memory:
    talk = Chat("cli", "talk")
    memory.conversations.append(Message("user", "The lantern hangs in the porch.", datetime.now(UTC), meta=talk.meta))
    memory.core.update("user", "habit", "rows at dawn")
    memory.index()
"""


def by_name(directory) -> dict[str, Path]:
    return {path.name.partition("-")[0].replace("_", "-"): path for path in Path(directory).glob("*.whl")}


def constraints_of(wheels, file) -> Path:
    file.write_text("".join(f"{name} @ {path.as_uri()}\n" for name, path in wheels.items() if name != "klaw"))
    return file


class Home:
    """A memory, and two environments: of the previous release, and of this one."""

    def __init__(self, home, wheels):
        self.home = home
        (home / "notes").mkdir()
        for name, text in NOTES.items():
            (home / "notes" / name).write_text(text)
        old = by_name(PREVIOUS)
        self.programs = {}
        for name, release in (("old", old), ("new", wheels)):
            (home / name).mkdir()
            listed = constraints_of(release, home / f"{name}.txt")
            self.programs[name] = install(home / name, "klaw[default]", release, listed)

    def environment(self, data):
        places = {"KLAW_DATA_DIR": str(self.home / data), "XDG_CACHE_HOME": str(self.home / "cache")}
        return {**places, "XDG_CONFIG_HOME": str(self.home / "config"), "KLAW_OFFLINE": "1"}

    def klaw(self, release, *arguments, data="data"):
        return run(self.programs[release] / "klaw", *arguments, cwd=self.home, **self.environment(data))

    def refused(self, release, *arguments, data="data"):
        """Return what a command says that fails without a traceback."""
        command = [self.programs[release] / "klaw", *arguments]
        environment = {**os.environ, **self.environment(data)}
        done = subprocess.run(command, cwd=self.home, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr


@pytest.fixture(scope="module")
def home(wheels, tmp_path_factory):
    return Home(tmp_path_factory.mktemp("upgrade"), wheels)


@pytest.fixture(scope="module")
def upgraded(home):
    """Use the previous release, then this one on its data; return what both found."""
    home.klaw("old", "index", "notes")
    home.klaw("old", "save", "The boat is in Split.")
    run(home.programs["old"] / "python", "-c", SAY, cwd=home.home, **home.environment("data"))
    shutil.copytree(home.home / "data", home.home / "before")
    questions = ("when does the beekeeper look inside", "boat", "lantern")
    asked = {question: ("search", "--json", question) for question in questions}
    found = {
        release: {question: json.loads(home.klaw(release, *words)) for question, words in asked.items()}
        for release in ("old", "new")
    }
    return home, found


def test_what_was_found_before_is_found_after_an_upgrade(upgraded):
    home, found = upgraded
    first = {release: {question: hits[0]["path"] for question, hits in each.items()} for release, each in found.items()}
    assert first["old"]["when does the beekeeper look inside"] == "notes/bees.md"
    assert first["new"] == first["old"]
    assert "rows at dawn" in home.klaw("new", "core", "get")


def test_an_upgraded_memory_is_sound_and_is_written_to(upgraded):
    home, _ = upgraded
    assert json.loads(home.klaw("new", "--json", "doctor"))["healthy"]
    (home.home / "notes" / "heron.md").write_text("# Heron\n\nIt stands in the reeds.\n")
    home.klaw("new", "index")
    assert json.loads(home.klaw("new", "search", "--json", "heron"))[0]["path"] == "notes/heron.md"
    home.klaw("new", "forget", "--yes", "notes/heron.md")


def test_a_downgrade_is_refused_with_what_to_do(upgraded):
    home, _ = upgraded
    kept = {path: path.read_bytes() for path in (home.home / "data").rglob("*.json*")}
    assert kept
    for command in (("search", "boat"), ("index",), ("save", "More.")):
        said = home.refused("old", *command)
        assert "newer version" in said
        assert "install" in said
    assert {path: path.read_bytes() for path in (home.home / "data").rglob("*.json*")} == kept
    assert json.loads(home.klaw("new", "--json", "doctor"))["healthy"]


def test_a_copy_from_before_the_upgrade_still_serves_the_previous_release(upgraded):
    home, found = upgraded
    again = json.loads(home.klaw("old", "search", "--json", "boat", data="before"))
    assert again[0]["path"] == found["old"]["boat"][0]["path"]


@pytest.mark.parametrize("installer", ["uv pip", "pip"])
def test_a_plugin_of_the_previous_release_is_refused_beside_this_core(wheels, tmp_path, installer):
    run("uv", "venv", "--quiet", "--seed", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    program = (
        ["uv", "pip", "install", "--python", python] if installer == "uv pip" else [python, "-m", "pip", "install"]
    )
    command = [*program, "--dry-run", wheels["klaw"], by_name(PREVIOUS)["klaw-fts5"]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    reason = {"uv pip": "depends on klaw>=", "pip": "depends on klaw<"}[installer]  # what they call a conflict
    assert f"klaw-fts5==0.1.0 {reason}" in done.stderr or f"klaw-fts5 0.1.0 {reason}" in done.stdout + done.stderr
