"""``klaw config``: the file is changed as a careful person would, or not at all."""

import json
import stat
import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from klaw_core.cli.config_edit import edit, with_value

FILE = """\
# Klaw, as I like it
[memory.embedding]
type = "none"  # no model on this machine

[memory.chunking]
# smaller than the default
max_tokens = 300

[[memory.retrieval]]
type = "fts5"  # words only
"""


@pytest.fixture
def file(klaw, user_home):
    assert klaw("--version").exit_code == 0
    path = user_home / "config" / "klaw" / "config.toml"
    path.write_text(FILE, "utf-8")
    return path


class TestShow:
    def test_list_shows_settings_and_marks_defaults(self, klaw, file):
        lines = klaw("config", "list").stdout.splitlines()

        assert file.exists()
        assert "memory.chunking.max_tokens = 300" in lines
        assert "memory.chunking.overlap_tokens = 80  # default" in lines
        assert 'memory.retrieval[0].type = "fts5"' in lines
        assert "memory.fusion.k = 60  # default" in lines

    def test_list_as_json(self, klaw, file):
        assert file.exists()
        assert json.loads(klaw("config", "list", "--json").stdout)["memory.chunking.max_tokens"] == 300

    def test_values_of_environment_variables_are_not_shown(self, klaw, file, monkeypatch):
        monkeypatch.setenv("SECRET", "hunter2")
        file.write_text('[memory.store]\npath = "${SECRET}.db"\n', "utf-8")

        assert 'memory.store.path = "${SECRET}.db"' in klaw("config", "list").stdout

    @pytest.mark.parametrize(
        ("key", "printed"),
        [
            ("memory.chunking.max_tokens", "300\n"),
            ("memory.embedding.type", "none\n"),
            ("plugins.disabled", "[]\n"),
        ],
    )
    def test_get_prints_the_value_of_a_key(self, klaw, file, key, printed):
        assert file.exists()
        assert klaw("config", "get", key).stdout == printed

    def test_get_of_a_table_prints_all_of_it(self, klaw, file):
        assert file.exists()
        assert sorted(klaw("config", "get", "memory.chunking").stdout.splitlines()) == [
            "memory.chunking.max_tokens = 300",
            "memory.chunking.overlap_tokens = 80",
            'memory.chunking.type = "markdown"',
        ]

    def test_get_suggests_the_nearest_key(self, klaw, file):
        assert file.exists()
        result = klaw("config", "get", "memory.chunking.max_token")

        assert result.exit_code == 1
        assert "did you mean 'memory.chunking.max_tokens'?" in result.stderr

    @pytest.mark.parametrize(
        ("key", "meant"),
        [
            ("max_tokens", "memory.chunking.max_tokens"),
            ("fusion.k", "memory.fusion.k"),
            ("max_token", "memory.chunking.max_tokens"),
            ("memory.fusoin.k", "memory.fusion.k"),
            ("memory.fusoin", "memory.fusion"),
        ],
    )
    def test_get_finds_a_key_by_its_last_part(self, klaw, file, key, meant):
        assert file.exists()
        assert f"no such setting: {key}; did you mean {meant!r}?" in klaw("config", "get", key).stderr

    def test_get_of_an_unknown_key_names_the_command_that_lists_keys(self, klaw, file):
        assert file.exists()
        result = klaw("config", "get", "nope")

        assert result.exit_code == 1
        assert result.stderr == "klaw: no such setting: nope → `klaw config list` shows all settings\n"

    def test_path_prints_the_configuration_file(self, klaw, file, user_home):
        (user_home / "work" / "klaw.toml").write_text("", "utf-8")
        places = json.loads(klaw("config", "path", "--json").stdout)

        assert klaw("config", "path").stdout == f"{file}\n"
        assert places["config"] == str(file)
        assert places["exists"] is True
        assert places["project"] == str(user_home / "work" / "klaw.toml")
        assert places["data_dir"] == str(user_home / "data" / "klaw")


class TestSet:
    def test_only_the_value_changes(self, klaw, file):
        result = klaw("config", "set", "memory.chunking.max_tokens", "200")

        assert result.exit_code == 0
        assert file.read_text("utf-8") == FILE.replace("300", "200")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_missing_table_is_created(self, klaw, file):
        klaw("config", "set", "memory.fusion.k", "30")

        assert file.read_text("utf-8").startswith(FILE.partition("[[")[0])
        assert tomllib.loads(file.read_text("utf-8"))["memory"]["fusion"] == {"k": 30}

    def test_a_missing_file_is_created_private(self, klaw, file):
        file.unlink()

        assert klaw("config", "set", "memory.retrieval[0].weight", "0.25").exit_code == 0
        retrieval = tomllib.loads(file.read_text("utf-8"))["memory"]["retrieval"]
        assert [(entry["type"], entry["weight"]) for entry in retrieval] == [("sqlite-vec", 0.25), ("fts5", 1.0)]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    @pytest.mark.parametrize(
        ("key", "value", "made"),
        [
            ("memory.reranking[0].type", "recency", {"reranking": [{"type": "recency"}]}),
            ("memory.embedding.fallback[0].type", "ollama", {"embedding": {"fallback": [{"type": "ollama"}]}}),
            (
                "memory.sources",
                '[{type = "workspace", path = "/n"}]',
                {"sources": [{"type": "workspace", "path": "/n"}]},
            ),
        ],
    )
    def test_a_missing_array_is_created_from_the_value(self, klaw, file, key, value, made):
        file.unlink()
        result = klaw("config", "set", key, value)

        assert result.exit_code == 0, result.stderr
        assert tomllib.loads(file.read_text("utf-8"))["memory"] == made
        assert klaw("config", "list").exit_code == 0

    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("memory.chunking.max_token", "200", "did you mean 'max_tokens'?"),
            ("memory.chunking.max_tokens", "many", "expected int, got 'many'"),
            ("memory.chunking.overlap_tokens", "299", "overlap_tokens"),
            ("memory.fusoin.k", "3", "did you mean 'fusion'?"),
            ("memory.retrieval[7].weight", "3", "memory.retrieval[7]: no such table; there are 1, counted from 0"),
            ("memory.retrieval[0]", "3", "is a table"),
            ("memory.sources[0].path", "/tmp", "memory.sources[0].type: expected the name of a source"),
            ("memory.embedding.type.x", "3", "is not a table"),
            ("memory..k", "3", "is not a valid setting name"),
        ],
    )
    def test_a_wrong_setting_is_not_written(self, klaw, file, key, value, words):
        result = klaw("config", "set", key, value)

        assert (result.exit_code, result.stdout) == (1, "")
        assert words in result.stderr
        assert file.read_text("utf-8") == FILE

    def test_a_new_type_removes_the_options_of_the_old_one(self, klaw, file):
        klaw("config", "set", "memory.fusion.k", "30")

        result = klaw("config", "set", "memory.fusion.type", "weighted")

        assert result.exit_code == 0
        assert tomllib.loads(file.read_text("utf-8"))["memory"]["fusion"]["type"] == "weighted"
        assert klaw("config", "list").exit_code == 0

    def test_a_type_that_is_not_installed_is_written_with_a_notice(self, klaw, file):
        result = klaw("config", "set", "memory.store.type", "mongodb")

        assert result.exit_code == 0
        assert "no plugin provides the store 'mongodb'" in result.stderr
        assert 'type = "mongodb"' in file.read_text("utf-8")

    def test_a_setting_that_is_overridden_gets_a_notice(self, klaw, file, user_home, monkeypatch):
        project = user_home / "work" / "klaw.toml"
        project.write_text("[memory.fusion]\nk = 10\n", "utf-8")
        monkeypatch.setenv("KLAW_EMBEDDER", "none")

        assert (
            f"{project} sets it to 10, which takes precedence" in klaw("config", "set", "memory.fusion.k", "30").stderr
        )
        assert klaw("config", "set", "memory.fusion.k", "10").stderr == ""
        assert klaw("config", "set", "memory.fusion.pool", "40").stderr == ""
        assert 'KLAW_EMBEDDER sets it to "none"' in klaw("config", "set", "memory.embedding.type", "onnx").stderr
        assert "k = 10" in file.read_text("utf-8")

    @pytest.mark.parametrize("layer", ["data directory", "project", "KLAW_EMBEDDER"])
    @pytest.mark.usefixtures("file")
    def test_every_layer_that_overrides_a_setting_is_named(self, klaw, user_home, monkeypatch, layer):
        name = _put(layer, user_home, monkeypatch, "none")

        result = klaw("config", "set", "memory.embedding.type", "onnx")

        assert f'{name} sets it to "none", which takes precedence' in result.stderr
        assert klaw("config", "set", "memory.embedding.type", "none").stderr == ""

    @pytest.mark.parametrize("layer", ["data directory", "project", "KLAW_EMBEDDER"])
    def test_a_misspelt_type_is_refused_although_another_layer_overrides_it(
        self, klaw, file, user_home, monkeypatch, layer
    ):
        _put(layer, user_home, monkeypatch, "none")

        result = klaw("config", "set", "memory.embedding.type", "onxn")

        assert (result.exit_code, result.stdout) == (1, "")
        assert "did you mean" in result.stderr
        assert file.read_text("utf-8") == FILE

    @pytest.mark.parametrize("layer", ["data directory", "project", "KLAW_EMBEDDER"])
    def test_an_option_whose_table_another_layer_replaces_has_no_effect_and_says_so(
        self, klaw, file, user_home, monkeypatch, layer
    ):
        name = _put(layer, user_home, monkeypatch, "none")
        file.write_text("", "utf-8")  # the default type is onnx

        result = klaw("config", "set", "memory.embedding.model", "all-MiniLM-L6-v2")

        assert result.exit_code == 0, result.stderr
        assert f"{name} selects another type for memory.embedding, so memory.embedding.model has no effect" in (
            result.stderr
        )

    def test_an_option_of_a_type_that_another_layer_selects_may_be_set(self, klaw, file, user_home, monkeypatch):
        _put("data directory", user_home, monkeypatch, "onnx")
        file.write_text("", "utf-8")

        assert klaw("config", "set", "memory.embedding.model", "all-MiniLM-L6-v2").stderr == ""

    @pytest.mark.parametrize("layer", ["data directory", "project", "KLAW_EMBEDDER"])
    @pytest.mark.usefixtures("file")
    def test_a_removed_setting_that_another_layer_makes_gets_a_notice(self, klaw, user_home, monkeypatch, layer):
        klaw("config", "set", "memory.embedding.type", "onnx")
        name = _put(layer, user_home, monkeypatch, "none")

        assert f'{name} sets it to "none"' in klaw("config", "unset", "memory.embedding.type").stderr

    def test_a_broken_file_can_be_fixed_key_by_key(self, klaw, file):
        file.write_text("[memory.chunking]\nmax_tokens = 'x'\noverlap_tokens = 'y'\n", "utf-8")

        assert klaw("config", "set", "memory.chunking.max_tokens", "300").exit_code == 0
        assert klaw("config", "set", "memory.chunking.overlap_tokens", "30").exit_code == 0
        assert klaw("config", "get", "memory.chunking.max_tokens").stdout == "300\n"

    def test_an_invalid_toml_file_is_not_changed(self, klaw, file):
        file.write_text("[memory\n", "utf-8")

        assert klaw("config", "set", "memory.fusion.k", "30").exit_code == 1
        assert file.read_text("utf-8") == "[memory\n"

    def test_a_link_is_followed_and_not_replaced(self, klaw, file, user_home):
        real = user_home / "dotfiles.toml"
        file.rename(real)
        file.symlink_to(real)

        assert klaw("config", "set", "memory.fusion.k", "30").exit_code == 0
        assert file.is_symlink()
        assert "k = 30" in real.read_text("utf-8")


class TestTrust:
    def test_a_project_may_set_everything_only_when_trusted(self, klaw, file, user_home):
        project = user_home / "work" / "klaw.toml"
        project.write_text('[memory.store]\npath = "elsewhere.db"\n', "utf-8")
        before = klaw("status")

        result = klaw("config", "trust", str(user_home / "work"))

        assert before.exit_code == 1
        assert "a project may not set memory.store.path" in before.stderr
        assert result.exit_code == 0
        assert FILE.splitlines()[0] in file.read_text("utf-8")
        assert "elsewhere.db" in klaw("status").stdout

    def test_trusting_a_project_twice_has_no_further_effect(self, klaw, file, user_home):
        (user_home / "work" / "klaw.toml").write_text("", "utf-8")
        klaw("config", "trust")
        once = file.read_text("utf-8")

        assert klaw("config", "trust").exit_code == 0
        assert file.read_text("utf-8") == once

    def test_a_directory_without_a_project_file_cannot_be_trusted(self, klaw, file):
        result = klaw("config", "trust")

        assert result.exit_code == 1
        assert "there is no klaw.toml in" in result.stderr
        assert file.read_text("utf-8") == FILE


def _put(layer, user_home, monkeypatch, embedder):
    """Configure an embedder in a layer above the user's file; return the name of the layer."""
    text = f'[memory.embedding]\ntype = "{embedder}"\n'
    if layer == "KLAW_EMBEDDER":
        monkeypatch.setenv("KLAW_EMBEDDER", embedder)
        return layer
    monkeypatch.delenv("KLAW_EMBEDDER", raising=False)
    if layer == "data directory":
        monkeypatch.setenv("KLAW_DATA_DIR", str(user_home / "data"))
        path = user_home / "data" / "config.toml"
    else:
        path = user_home / "work" / "klaw.toml"
        monkeypatch.setattr("klaw_core.config.files._lists", lambda *_: True)  # it is trusted
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_change_that_changes_nothing_writes_no_file(klaw, file):
    before = file.stat()
    assert klaw("config", "unset", "memory.fusion.k").exit_code == 0
    assert klaw("config", "set", "memory.chunking.max_tokens", "300").exit_code == 0
    assert file.stat() == before
    file.unlink()
    assert klaw("config", "unset", "memory.fusion.k").exit_code == 0
    assert not file.exists()


def test_an_edit_follows_a_link(tmp_path):
    real, link = tmp_path / "dotfiles" / "klaw.toml", tmp_path / "config.toml"
    real.parent.mkdir()
    real.write_text(FILE, "utf-8")
    link.symlink_to(real)
    edit(link, lambda source: with_value(source, "memory.chunking.max_tokens", value=200))
    assert link.is_symlink()
    assert tomllib.loads(real.read_text("utf-8"))["memory"]["chunking"]["max_tokens"] == 200


def test_commands_at_once_lose_nothing(klaw, file):
    """Each is a process, as in a script that sets up a machine."""
    assert klaw("--version").exit_code == 0
    names = [f"a{number}" for number in range(4)]
    words = [[sys.executable, "-m", "klaw_core", "config", "set", f"agents.{name}.enabled", "false"] for name in names]
    running = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in words]
    assert [process.wait() for process in running] == [0] * len(names)
    assert tomllib.loads(file.read_text("utf-8"))["agents"] == {name: {"enabled": False} for name in names}


def test_changes_at_once_lose_nothing(tmp_path):
    """The worst order: everybody has read the file before anybody writes it, unless they take turns."""
    file, names = tmp_path / "config.toml", [f"a{number}" for number in range(8)]
    met = threading.Barrier(len(names))

    def change(name, source):
        with suppress(threading.BrokenBarrierError):
            met.wait(0.2)  # breaks for those who take turns
        return with_value(source, f"agents.{name}.enabled", value=False)

    with ThreadPoolExecutor(len(names)) as pool:
        assert [*pool.map(lambda name: edit(file, partial(change, name)), names)] == [()] * len(names)
    assert {*tomllib.loads(file.read_text("utf-8"))["agents"]} == {*names}
