"""What ``Memory.open`` means by a path: a database file, or a data directory."""

from __future__ import annotations

import pytest

from klaw_core import ConfigError, Memory, load_config
from klaw_core.config.opening import config_for


def no_check(_selections, _disabled):
    return ()


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("KLAW_CONFIG", "KLAW_DATA_DIR", "KLAW_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLAW_EMBEDDER", "none")


class TestAFile:
    def test_a_path_of_a_file_is_the_database(self, tmp_path):
        with Memory.open("x.db") as memory:
            assert memory.status().location == str(tmp_path / "x.db")
            memory.save("The ferry leaves at seven.")
        assert (tmp_path / "x.db").is_file()
        assert (tmp_path / "x.db-data" / "saved.jsonl").is_file()
        with Memory.open(tmp_path / "x.db") as memory:
            assert memory.search("ferry")

    def test_two_files_in_one_directory_are_separate_memories(self):
        with Memory.open("x.db") as memory:
            memory.save("The ferry leaves at seven.")
        with Memory.open("y.db") as memory:
            memory.save("The ferry is late.")
            memory.index()
            assert len(memory.search("ferry")) == 1

    def test_other_files_can_have_a_separate_data_directory(self, tmp_path):
        with Memory.open("x.db", data_dir="own") as memory:
            assert memory.status().location == str(tmp_path / "x.db")
            assert memory.config.data_dir == tmp_path / "own"

    @pytest.mark.parametrize("name", [":memory:", ""])
    def test_an_invalid_file_name_is_rejected(self, name):
        with pytest.raises(ConfigError, match="is not a file name"):
            Memory.open(name)


class TestADirectory:
    @pytest.mark.parametrize("given", [{"data_dir": "there"}, {"config": "there"}])
    def test_a_directory_contains_the_whole_memory(self, tmp_path, given):
        with Memory.open(**given) as memory:
            assert memory.status().location == str(tmp_path / "there" / "klaw.db")

    def test_an_existing_directory_can_have_a_suffix(self, tmp_path):
        (tmp_path / "v1.0").mkdir()
        assert config_for("v1.0", None, no_check).data_dir == tmp_path / "v1.0"

    def test_a_data_directory_overrides_that_of_a_configuration(self, tmp_path):
        config = load_config(data_dir=tmp_path / "a")
        assert config_for(config, None, no_check) is config
        assert config_for(config, "b", no_check).data_dir == tmp_path / "b"

    def test_two_different_data_directories_are_rejected(self):
        with pytest.raises(ConfigError, match="different data directories"):
            Memory.open("a", data_dir="b")
