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
    def test_the_database_is_that_file(self, tmp_path):
        with Memory.open("x.db") as memory:
            assert memory.status().location == str(tmp_path / "x.db")
            memory.save("The ferry leaves at seven.")
        assert (tmp_path / "x.db").is_file()
        assert (tmp_path / "x.db-data" / "saved.jsonl").is_file()
        with Memory.open(tmp_path / "x.db") as memory:
            assert memory.search("ferry")

    def test_two_files_of_one_directory_are_two_memories(self):
        with Memory.open("x.db") as memory:
            memory.save("The ferry leaves at seven.")
        with Memory.open("y.db") as memory:
            memory.save("The ferry is late.")
            memory.index()
            assert len(memory.search("ferry")) == 1

    def test_a_data_directory_for_what_stands_next_to_it(self, tmp_path):
        with Memory.open("x.db", data_dir="own") as memory:
            assert memory.status().location == str(tmp_path / "x.db")
            assert memory.config.data_dir == tmp_path / "own"

    @pytest.mark.parametrize("name", [":memory:", ""])
    def test_no_file_is_no_memory(self, name):
        with pytest.raises(ConfigError, match="is not a file name"):
            Memory.open(name)


class TestADirectory:
    @pytest.mark.parametrize("given", [{"data_dir": "there"}, {"config": "there"}])
    def test_it_holds_everything(self, tmp_path, given):
        with Memory.open(**given) as memory:
            assert memory.status().location == str(tmp_path / "there" / "klaw.db")

    def test_one_that_is_there_may_have_a_suffix(self, tmp_path):
        (tmp_path / "v1.0").mkdir()
        assert config_for("v1.0", None, no_check).data_dir == tmp_path / "v1.0"

    def test_it_moves_a_configuration(self, tmp_path):
        config = load_config(data_dir=tmp_path / "a")
        assert config_for(config, None, no_check) is config
        assert config_for(config, "b", no_check).data_dir == tmp_path / "b"

    def test_two_are_refused(self):
        with pytest.raises(ConfigError, match="different data directories"):
            Memory.open("a", data_dir="b")
