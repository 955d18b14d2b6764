"""What a memory is made of: workspaces, configured sources and plugins that fit together; what does not is named."""

import os
from importlib.metadata import entry_points

import pytest
from attrs import frozen

from klaw_core import (
    Component,
    ConfigError,
    KlawError,
    Memory,
    PluginError,
    PluginNotFoundError,
    RetrievalError,
    StoreReadOnlyError,
    WorkspaceError,
    install_extras,
)
from klaw_core.assembly import option_problems
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover


def words(memory, query, **options):
    return [result.path for result in memory.search(query, mode="fts", **options)]


class TestWorkspaces:
    def test_a_subdirectory_belongs_to_its_workspace(self, home, memory):
        home.write("a.md", "one")
        home.write("sub/b.md", "two")
        memory.index(home.notes)
        memory.index(home.notes / "sub")
        assert list(memory.status().workspaces) == ["notes"]

    def test_a_parent_directory_of_a_workspace_is_rejected(self, home, memory):
        home.write("sub/b.md", "two")
        memory.index(home.notes / "sub")
        with pytest.raises(WorkspaceError, match="contains the workspace 'sub'"):
            memory.index(home.notes)

    def test_two_directories_of_one_name_get_different_names(self, home, memory, check):
        for parent in ("x", "y"):
            (home.root / parent / "docs").mkdir(parents=True)
            (home.root / parent / "docs" / "a.md").write_text(f"in {parent}")
            memory.index(home.root / parent / "docs")
        assert list(memory.status().workspaces) == ["docs", "docs-2"]
        assert sorted(memory.status().origins) == ["docs", "docs-2"]
        check(memory)

    def test_a_configured_source_with_the_name_of_a_workspace_is_reported(self, home, check):
        """Either refused, or both indexed: never each run deleting what the other wrote."""
        home.write("a.md", "from the workspace")
        other = home.root / "other" / "notes"
        other.mkdir(parents=True)
        (other / "b.md").write_text("from the configuration")
        with home.open(sources=[{"type": "workspace", "path": str(other)}]) as memory:
            try:
                memory.index(home.notes)
                memory.index()
            except WorkspaceError as error:
                assert "notes" in str(error)  # noqa: PT017  # refusing is one right answer
            else:
                assert memory.index().removed == 0
            check(memory)

    def test_a_forgotten_note_of_a_configured_source_stays_forgotten(self, home):
        home.write("a.md", "the harbour")
        with home.open(sources=[{"type": "workspace", "path": str(home.notes)}]) as memory:
            memory.index()
            with pytest.raises(KlawError, match="exclude"):
                memory.forget("notes/a.md")
            assert words(memory, "harbour") == ["notes/a.md"]

    def test_a_configured_source_cannot_have_the_name_of_saved_memories(self, home):
        """A run removes what its scan does not find, and saved memories stand nowhere else."""
        (home.root / "saved").mkdir()
        with home.open(sources=[{"type": "workspace", "path": str(home.root / "saved")}]) as memory:
            saved = memory.save("the harbour code")
            with pytest.raises(KlawError, match="saved"):
                memory.index()
            assert memory.get(saved.path).content == "the harbour code"


def test_a_plugin_that_cannot_be_built_is_named(home):

    @frozen
    class Options:
        pass

    def factory(_options, _place):
        raise ImportError("no module named what_it_needs")

    home.extra.append(("fusion", Component("broken", Options, factory, 1)))
    with pytest.raises(PluginError, match=r"memory\.fusion.*what_it_needs"):
        home.open(fusion={"type": "broken"})


@pytest.mark.parametrize(
    ("missing", "extras", "more"),
    [
        (["klaw-embed-ollama", "klaw-notes"], ["notes", "ollama"], ""),
        (["klaw-store-sqlitevec", "klaw-fts5"], ["fts5", "sqlitevec"], ""),
        (["klaw-notes", "klaw-store-sqlitevec", "klaw-fts5", "klaw-embed-onnx"], ["default"], ""),
        (["klaw-fts5", "klaw-rerank-http", "mine"], ["fts5", "rerank-http"], "; installed: rrf"),
    ],
)
def test_all_missing_plugins_are_named_with_one_command(tmp_path, missing, extras, more):
    points = [point for point in entry_points(group="klaw") if point.dist.name not in missing]
    tables = {
        "embedding": {"type": "ollama" if "klaw-embed-ollama" in missing else "onnx"},
        "reranking": [{"type": "http"}] if "klaw-rerank-http" in missing else [],
        "fusion": {"type": "mine" if "mine" in missing else "rrf"},
    }
    environment = {"KLAW_CONFIG": os.devnull}
    config = load_config(data_dir=tmp_path / "data", environment=environment, overrides={"memory": tables})
    with pytest.raises(PluginNotFoundError) as caught:
        Memory.open(config, registry=discover(points=points))
    assert caught.value.hint.startswith(install_extras(extras) + more)


@pytest.mark.parametrize(("there", "mode", "other"), [("sqlite-vec", "vector", "fts"), ("fts5", "fts", "vector")])
def test_a_retriever_that_is_missing_does_not_stop_the_other(make_home, there, mode, other):
    home = make_home("sqlite")
    home.write("a.md", "the harbour")
    with home.open(retrieval=[{"type": "mine"}, {"type": there}]) as memory:
        report = memory.index(home.notes)
        assert any(notice.startswith("mine is disabled: ") for notice in report.notices)
        found = memory.search("harbour")
        assert [result.path for result in found] == ["notes/a.md"]
        assert any(notice.startswith("mine is disabled: ") for notice in found.notices)
        assert memory.search("harbour", mode=mode)
        with pytest.raises(RetrievalError, match="mine is disabled"):
            memory.search("harbour", mode=other)
        assert "retriever" in {finding.check for finding in memory.doctor().findings}
        assert any("mine is disabled" in problem for problem in memory.status().problems)
    with pytest.raises(PluginNotFoundError, match="no plugin provides the retriever 'mine'"):
        home.open(retrieval=[{"type": "mine"}])


def test_a_data_directory_that_cannot_be_created_is_named(home):
    (home.root / "data").write_text("a file stands in the way")
    with pytest.raises(StoreReadOnlyError, match="data"):
        home.open()


@pytest.mark.parametrize("directory", ["nothing", "\0", "~nosuchuser/notes", "x" * 5000, "loop", "file"])
def test_a_directory_that_cannot_be_indexed_is_named(home, memory, directory):
    (home.root / "loop").symlink_to("loop")
    (home.root / "file").write_text("")
    with pytest.raises(WorkspaceError):
        memory.index(directory if directory.startswith("~") else f"{home.root}/{directory}")
    assert memory.status().workspaces == {}


def test_a_retriever_of_another_store_is_rejected(home):
    other = "sqlite" if home.backend == "memory" else "memory"
    with pytest.raises(PluginError, match="needs a store that offers"):
        home.open(store={"type": other})


def test_problems_of_the_file_and_of_options_are_reported_together(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[memory.fuson]\nk = 1\n[memory.fusion]\ntype = "rrf"\nk = "a"\n[memory.chunking]\nmax_token = 4\n')
    with pytest.raises(ConfigError) as caught:
        load_config(config_file=file, environment={}, check=option_problems)
    said = "\n".join(caught.value.problems)
    for part in ("memory.fuson", "memory.fusion.k", "expected int", "did you mean 'max_tokens'"):
        assert part in said


class TestADisabledPlugin:
    """Disabling is the remedy for a plugin that hangs while it is imported, whatever else is wrong."""

    def load(self, tmp_path, text, **environment):
        file = tmp_path / "config.toml"
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_config(config_file=file, environment=environment, check=option_problems)
        return "\n".join(caught.value.problems)

    def test_a_plugin_that_is_not_disabled_is_imported_for_its_options(self, bomb, tmp_path):
        assert "memory.fuson" in self.load(tmp_path, "[memory.fuson]\nk = 1\n")
        assert bomb.exists()

    @pytest.mark.parametrize(
        ("text", "environment"),
        [
            ("[memory.fusion]\nk = 'a'\n[memory.fuson]\n", {"KLAW_DISABLE_PLUGINS": "x, klaw-bomb"}),
            ("[memory.fusion]\nk = 'a'\n[memory.fuson]\n[plugins]\ndisabled = ['bomb']\n", {}),
        ],
    )
    def test_a_disabled_plugin_is_not_imported_to_find_other_problems(self, bomb, tmp_path, text, environment):
        said = self.load(tmp_path, text, **environment)

        assert "memory.fuson" in said
        assert "expected int" in said
        assert not bomb.exists()

    @pytest.mark.parametrize(
        "text",
        [
            "[plugins]\ndisabled = ['bomb']\n[memory.fusion\n",
            "[plugins]\ndisabled = 'bomb'\n",
            "[plugins]\ndisabled = ['bomb', 1]\n",
            "plugins = ['bomb']\n",
        ],
    )
    def test_no_plugin_is_imported_if_the_disabled_ones_are_unknown(self, bomb, tmp_path, text):
        assert self.load(tmp_path, text)
        assert not bomb.exists()
