"""Configuration: layers, strict checks, every problem at once, and nothing but ConfigError."""

import os
import pydoc
from pathlib import Path

import pytest

import klaw_core
from klaw_core import ConfigError
from klaw_core.config.layers import leaves, overlay, project_file, shown
from klaw_core.config.load import load_config
from klaw_core.values.config import Selection

EMPTY = {"KLAW_CONFIG": os.devnull}


@pytest.fixture
def load(tmp_path):
    """Load with a user file, a project file, variables and overrides, each given as it is written."""

    def load(user="", project=None, *, trusted=False, environment=None, **overrides):
        home, work = tmp_path / "home", tmp_path / "work"
        home.mkdir(exist_ok=True)
        work.mkdir(exist_ok=True)
        if trusted:
            user = f'trusted_projects = ["{work.resolve()}"]\n{user}'
        (home / "config.toml").write_text(user)
        if project is not None:
            (work / "klaw.toml").write_text(project)
        return load_config(
            config_file=home / "config.toml",
            data_dir=tmp_path / "data",
            directory=work,
            environment=environment or {},
            overrides=overrides,
        )

    return load


@pytest.fixture
def problems(load):
    """What is wrong, as a list."""

    def problems(*arguments, **options):
        with pytest.raises(ConfigError) as caught:
            load(*arguments, **options)
        assert str(caught.value).count("\n") == 0, "an error is one line"
        return list(caught.value.problems)

    return problems


class TestLayers:
    def test_a_stage_that_a_file_names_is_no_default(self, load):
        (stage,) = load('[[memory.reranking]]\ntype = "chat"\npaths = ["conversations/"]\n').reranking
        assert (stage.type, stage.paths, stage.is_default) == ("chat", ("conversations/",), False)

    def test_an_empty_file_is_the_defaults(self, load, tmp_path):
        nothing = load_config(data_dir=tmp_path / "data", environment=EMPTY)
        empty = load("")
        assert (empty.store.type, empty.chunking.type, empty.embedding.type) == ("sqlite", "markdown", "onnx")
        assert [(retriever.type, retriever.weight) for retriever in empty.retrieval] == [
            ("sqlite-vec", 1.0),
            ("fts5", 1.0),
        ]
        assert (empty.fusion.type, empty.sources) == ("rrf", ())
        (stage,) = empty.reranking
        assert (stage.type, stage.is_default, "conversations/" in stage.paths) == ("chat", True, True)
        assert (empty.disabled_plugins, empty.offline) == ((), False)
        assert empty.table == nothing.table

    def test_a_higher_layer_overrides_a_lower_one(self, load):
        user = "[memory.fusion]\nk = 1\npool = 1\n"
        assert load(user).fusion.options == {"k": 1, "pool": 1}
        project = "[memory.fusion]\nk = 2\n"
        assert load(user, project).fusion.options == {"k": 2, "pool": 1}
        last = load(user, project, memory={"fusion": {"k": 3}})
        assert last.fusion.options == {"k": 3, "pool": 1}
        assert [path.name for path in last.files] == ["config.toml", "klaw.toml"]

    def test_the_fingerprint_depends_on_the_memory_and_does_not_reveal_keys(self, load):
        one, other = ({"embedding": {"type": "openai", "api_key": key}} for key in ("sk-1", "sk-2"))

        assert load(memory=one).fingerprint == load(memory=one).fingerprint
        assert load(memory=one).fingerprint != load(memory=other).fingerprint
        assert "sk-1" not in load(memory=one).fingerprint

    def test_a_different_type_drops_the_options_of_the_lower_layer(self, load):
        user = '[memory.embedding]\ntype = "onnx"\nmodel = "x"\n'
        assert load(user, environment={"KLAW_EMBEDDER": "ollama"}).embedding == Selection(
            "embedder", "ollama", "memory.embedding"
        )
        assert load(user, environment={"KLAW_EMBEDDER": "onnx"}).embedding.options == {"model": "x"}
        assert load(user, memory={"embedding": {"type": "ollama", "model": "y"}}).embedding.options == {"model": "y"}

    def test_an_array_replaces_the_whole_array(self, load):
        assert [retriever.type for retriever in load('[[memory.retrieval]]\ntype = "words"\n').retrieval] == ["words"]

    def test_overlay_does_not_change_its_arguments(self):
        lower, upper = {"a": {"type": "x", "k": 1}}, {"a": {"type": "y"}}
        assert overlay(lower, upper) == {"a": {"type": "y"}}
        assert (lower, upper) == ({"a": {"type": "x", "k": 1}}, {"a": {"type": "y"}})

    def test_the_nearest_project_is_used_and_none_above_the_home_directory(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        deep = tmp_path / "home" / "a" / "b"
        deep.mkdir(parents=True)
        assert project_file(deep) is None
        (tmp_path / "klaw.toml").write_text("")
        assert project_file(deep) is None, "above the home directory"
        (tmp_path / "home" / "klaw.toml").write_text("")
        assert project_file(deep) == tmp_path / "home" / "klaw.toml"
        (tmp_path / "home" / "a" / "klaw.toml").write_text("")
        assert project_file(deep) == tmp_path / "home" / "a" / "klaw.toml"
        (deep / "klaw.toml").mkdir()
        assert project_file(deep) == tmp_path / "home" / "a" / "klaw.toml", "a directory is no file"


class TestEnvironment:
    def test_the_environment_sets_the_data_directory(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        place = load_config(environment={**EMPTY, "KLAW_DATA_DIR": "~/elsewhere"}).data_dir
        assert place == tmp_path / "elsewhere"
        assert (
            load_config(data_dir=tmp_path / "x", environment={**EMPTY, "KLAW_DATA_DIR": "y"}).data_dir == tmp_path / "x"
        )
        assert load_config(environment={**EMPTY, "KLAW_DATA_DIR": ""}).data_dir.name == "klaw"
        with pytest.raises(ConfigError, match="KLAW_DATA_DIR"):
            load_config(environment={**EMPTY, "KLAW_DATA_DIR": "~nosuchuser/x"})

    def test_disabled_plugins_of_all_layers_are_united(self, load):
        found = load('[plugins]\ndisabled = ["a"]\n', environment={"KLAW_DISABLE_PLUGINS": " b, c ,,"})
        assert found.disabled_plugins == ("a", "b", "c")

    @pytest.mark.parametrize(
        ("value", "offline"),
        [("1", True), ("true", True), ("YES", True), (" on ", True), ("0", False), ("no", False), ("", False)],
    )
    def test_the_environment_sets_offline(self, load, value, offline):
        assert load(environment={"KLAW_OFFLINE": value}).offline is offline

    def test_an_invalid_value_of_offline_is_rejected(self, problems):
        assert problems(environment={"KLAW_OFFLINE": "y"}) == ["KLAW_OFFLINE: expected 1 or 0, got 'y'"]

    def test_variables_in_strings_are_replaced(self, load, problems):
        user = (
            '[memory.embedding]\ntype = "ollama"\nkey = "a-${TOKEN}-${TOKEN}"\nnested = ["$TOKEN", {x = "${TOKEN}"}]\n'
        )
        options = load(user, environment={"TOKEN": "s3cret"}).embedding.options
        assert options == {"key": "a-s3cret-s3cret", "nested": ["$TOKEN", {"x": "s3cret"}]}
        assert problems(user.replace("embedding", "store")) == [
            "memory.store.key: the environment has no variable TOKEN",
            "memory.store.nested[1].x: the environment has no variable TOKEN",
        ]

    def test_an_unset_variable_is_reported_by_the_component_that_needs_it(self, load, problems):
        user = (
            '[[memory.reranking]]\ntype = "http"\nkey = "${A}"\n[[memory.reranking]]\ntype = "mmr"\n'
            '[memory.embedding]\ntype = "openai"\nkey = "${B}"\n'
            '[[memory.embedding.fallback]]\ntype = "ollama"\nurl = "${C}"\n'
            '[memory.language_model]\ntype = "x"\nkey = "${A}${B}"\n'
        )
        found = load(user, environment={"B": "set"})
        assert [stage.problem for stage in found.reranking] == [
            "memory.reranking[0].key: the environment has no variable A",
            "",
        ]
        assert found.embedding.problem == ""
        assert (
            found.embedding.fallback[0].problem == "memory.embedding.fallback[0].url: the environment has no variable C"
        )
        assert "no variable A" in found.language_model.problem
        for place in ("memory.embedding.type", "memory.fusion.x", "memory.sources[0].path"):
            key = place.rpartition(".")[2]
            table = place.rpartition(".")[0].partition("[")[0]
            header = f"[[{table}]]" if "[" in place else f"[{table}]"
            kind = "" if key == "type" else 'type = "rrf"\n'
            assert f"{place}: the environment has no variable A" in problems(f'{header}\n{kind}{key} = "${{A}}"\n')

    def test_no_signature_contains_the_environment(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-test")
        public = {name: getattr(klaw_core, name) for name in klaw_core.__all__}
        for name, value in public.items():
            if not isinstance(value, str):  # pydoc takes a string for the name of something to import
                assert "sk-secret" not in pydoc.render_doc(value), name
        assert "environment" in pydoc.render_doc(load_config)

    def test_the_shown_table_has_the_variable_and_not_its_value(self, load):
        shown_table = load('[memory.store]\npath = "${X}"\n', environment={"X": "secret"}).table
        assert shown_table["memory"]["store"]["path"] == "${X}"

    def test_a_variable_is_not_expanded_twice(self, load):
        options = load('[memory.store]\npath = "${X}"\n', environment={"X": "${Y}", "Y": "no"}).store.options
        assert options == {"path": "${Y}"}


class TestFiles:
    def test_a_configuration_file_that_was_named_must_exist(self, tmp_path):
        with pytest.raises(ConfigError, match="no such file"):
            load_config(config_file=tmp_path / "nothing.toml", environment={})
        with pytest.raises(ConfigError, match="no such file"):
            load_config(environment={"KLAW_CONFIG": str(tmp_path / "nothing.toml")})
        with pytest.raises(ConfigError, match="KLAW_CONFIG"):
            load_config(environment={"KLAW_CONFIG": "~nosuchuser/config.toml"})

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"a = [", "not valid TOML"),
            (b"a = 1\na = 2", "not valid TOML"),
            (b"caf\xe9 = 1", "not valid UTF-8"),
            (b"a = 1\0", "not valid TOML"),
            (b"a = " + b"9" * 5000, "not valid TOML"),
            (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
            (b".".join([b"a"] * 5000) + b" = 1", "nested too deeply"),
            (b".".join([b"a"] * 30) + b" = 1", "nested too deeply"),
        ],
    )
    def test_a_broken_file_is_named(self, tmp_path, data, reason):
        path = tmp_path / "config.toml"
        path.write_bytes(data)
        with pytest.raises(ConfigError) as caught:
            load_config(config_file=path, environment={})
        assert caught.value.problems[0].startswith(f"{path}: {reason}")

    def test_a_byte_order_mark_is_accepted(self, tmp_path):
        (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[memory.fusion]\nk = 5\n")
        assert load_config(config_file=tmp_path / "config.toml", environment={}).fusion.options == {"k": 5}

    def test_an_unreadable_file_is_named(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            load_config(config_file=tmp_path, environment={})
        with pytest.raises(ConfigError, match="cannot be read: File name too long"):
            load_config(config_file=tmp_path / ("x" * 300), environment={})
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(ConfigError, match="cannot be read: Too many levels"):
            load_config(config_file=tmp_path / "loop", environment={})

    def test_problems_of_the_project_and_of_the_user_are_reported_together(self, problems):
        found = problems("[memory]\nnonsense = 1\n", "a = [")
        assert len(found) == 2
        assert "config.toml: unknown key memory.nonsense" in found[0] + found[1]
        assert "klaw.toml: not valid TOML" in found[0] + found[1]


class TestOneDataDirectory:
    """A configuration in the data directory concerns that index alone."""

    def test_it_overrides_the_users_file_and_the_project_overrides_it(self, tmp_path):
        user, data, work = tmp_path / "config.toml", tmp_path / "data", tmp_path / "work"
        data.mkdir()
        work.mkdir()
        user.write_text("[memory.fusion]\nk = 1\npool = 2\nx = 3\n")
        (data / "config.toml").write_text("[memory.fusion]\npool = 20\nx = 30\n")
        (work / "klaw.toml").write_text("[memory.fusion]\nx = 300\n")
        found = load_config(config_file=user, data_dir=str(data), directory=work, environment=EMPTY)
        assert found.fusion.options == {"k": 1, "pool": 20, "x": 300}
        assert load_config(config_file=user, data_dir=tmp_path, environment=EMPTY).fusion.options["pool"] == 2

    def test_a_problem_in_it_is_named(self, tmp_path):
        (tmp_path / "config.toml").write_text("nonsense = 1\n")
        with pytest.raises(ConfigError, match="unknown key nonsense"):
            load_config(data_dir=tmp_path, environment=EMPTY)


class TestProjectMemories:
    def test_one_is_found_from_a_subdirectory(self, tmp_path):
        work, config = tmp_path / "work", tmp_path / "config.toml"
        (work / ".klaw").mkdir(parents=True)
        (work / "a" / "b").mkdir(parents=True)
        config.write_text(f'project_memories = ["{work.resolve()}"]\n')
        found = load_config(config_file=config, directory=work / "a" / "b", environment=EMPTY)
        assert (found.data_dir, found.own_data_dir, found.notices) == (work / ".klaw", True, ())

    def test_one_of_a_clone_is_not_used_and_reported(self, tmp_path):
        (tmp_path / "clone" / ".klaw").mkdir(parents=True)
        found = load_config(directory=tmp_path / "clone", environment=EMPTY)
        assert found.data_dir == load_config(environment=EMPTY).data_dir
        assert "klaw init --here" in found.notices[0]


class TestProblems:
    @pytest.mark.parametrize(
        ("user", "problem"),
        [
            ("memroy = 1", "unknown key memroy; did you mean 'memory'?"),
            ("zzz = 1", "unknown key zzz; known: memory, extensions, plugins, trusted_projects"),
            ("[memory.embeding]\ntype = 'x'", "unknown key memory.embeding; did you mean 'embedding'?"),
            ("[plugins]\ndisable = []", "unknown key plugins.disable; did you mean 'disabled'?"),
            ('["memory.chunking"]\nx = 1', 'unknown key "memory.chunking"; '),
            ('"a\\nb" = 1', 'unknown key "a\\nb"; known: '),
        ],
    )
    def test_an_unknown_key_is_reported_with_the_nearest_known_key(self, problems, user, problem):
        (found,) = problems(user)
        assert f"config.toml: {problem}" in found

    def test_an_unknown_key_in_overrides_is_reported(self, problems):
        assert problems(memroy={}) == ["options: unknown key memroy; did you mean 'memory'?"]

    @pytest.mark.parametrize(
        ("user", "problem"),
        [
            ("memory = 3", "memory: expected a table"),
            ("memory = []", "memory: expected a table"),
            ("plugins = 3", "plugins: expected a table, got 3"),
            ("plugins.disabled = 'x'", "plugins.disabled: expected an array of strings, got 'x'"),
            ("plugins.disabled = [1]", "plugins.disabled: expected an array of strings, got [1]"),
            ("trusted_projects = '/'", "trusted_projects: expected an array of strings, got '/'"),
            ("memory.store = 'sqlite'", "memory.store: expected a table with a key 'type'"),
            ("memory.store.type = 5", "memory.store.type: expected the name of a store, got 5"),
            ("memory.store.type = ''", "memory.store.type: expected the name of a store, got ''"),
            ("memory.store.type = 0x" + "f" * 6000, "expected the name of a store, got a very large number"),
            ("memory.reranking = {k = 1}", "memory.reranking.type: expected the name of a reranker, got None"),
            ("memory.reranking = 3", "memory.reranking: expected an array of tables, [[memory.reranking]]"),
            ("memory.reranking = [{k = 1}]", "memory.reranking[0].type: expected the name of a reranker, got None"),
            ("memory.retrieval = {type = 'x'}", "memory.retrieval: expected an array of tables, [[memory.retrieval]]"),
            ("memory.retrieval = ['x']", "memory.retrieval[0]: expected a table with a key 'type'"),
            ("memory.retrieval = []", "memory.retrieval: at least one retriever is needed"),
            ("memory.sources = 1", "memory.sources: expected an array of tables"),
            ("memory.sources = [{path = 'x'}]", "memory.sources[0].type: expected the name of a source, got None"),
        ],
    )
    def test_a_wrong_type_is_reported_with_its_place(self, problems, user, problem):
        assert any(problem in found for found in problems(user)), problems(user)

    @pytest.mark.parametrize("weight", ["nan", "inf", "-inf", "-1", "-0.1", "true", "'1'", "[1]", "0x" + "f" * 400])
    def test_a_weight_that_is_negative_or_not_a_number_is_rejected(self, problems, weight):
        (found,) = problems(f"[[memory.retrieval]]\ntype = 'words'\nweight = {weight}\n")
        assert found.startswith("memory.retrieval[0].weight: expected a number of at least 0, got ")

    @pytest.mark.parametrize(("weight", "number"), [("0", 0.0), ("-0.0", 0.0), ("2", 2.0), ("1e308", 1e308)])
    def test_a_weight_that_is_not_negative_is_accepted(self, load, weight, number):
        (retriever,) = load(f"[[memory.retrieval]]\ntype = 'words'\nweight = {weight}\n").retrieval
        assert (retriever.weight, retriever.options) == (number, {})

    def test_weight_is_an_ordinary_option_in_other_tables(self, load):
        assert load("[memory.fusion]\nweight = 2\n").fusion.options == {"weight": 2}

    def test_a_retriever_that_is_listed_twice_is_rejected(self, problems):
        user = "[[memory.retrieval]]\ntype = 'words'\n" * 2 + "[[memory.retrieval]]\ntype = 'fts5'\n"
        assert problems(user) == ["memory.retrieval: the retriever 'words' is listed twice"]

    def test_reranking_is_an_array_of_stages_in_order(self, load):
        user = "[[memory.reranking]]\ntype = 'recency'\nfloor = 0.5\n[[memory.reranking]]\ntype = 'mmr'\n"
        first, second = load(user).reranking
        assert (first.type, first.place, first.options) == ("recency", "memory.reranking[0]", {"floor": 0.5})
        assert (second.type, second.place, second.kind) == ("mmr", "memory.reranking[1]", "reranker")

    def test_a_single_stage_may_be_a_plain_table(self, load):
        (stage,) = load("[memory.reranking]\ntype = 'mmr'\nrelevance = 0.5\n").reranking
        assert (stage.type, stage.place, stage.options) == ("mmr", "memory.reranking", {"relevance": 0.5})

    def test_a_stage_that_is_listed_twice_is_rejected(self, problems):
        user = "[[memory.reranking]]\ntype = 'mmr'\n" * 2
        assert problems(user) == ["memory.reranking: the reranker 'mmr' is listed twice"]

    def test_all_problems_are_reported_at_once(self, problems):
        user = """
            nonsense = 1
            plugins.disabled = 3
            [memory]
            store = 5
            [memory.embedding]
            type = "${UNSET}"
            [[memory.retrieval]]
            type = "words"
            weight = nan
        """
        project = "[memory.sources]\npath = '/'"
        found = problems(user, project, environment={"KLAW_OFFLINE": "perhaps"})
        wanted = (
            "nonsense", "plugins.disabled", "memory.store", "UNSET", "weight", "KLAW_OFFLINE", "a project may not set",
        )  # fmt: skip
        for name in wanted:
            assert sum(name in problem for problem in found) >= 1, name


FREE = '[memory.fusion]\ntype = "weighted"\n'
CUT = "[memory.chunking]\nmax_tokens = 100\n"
BOUND = {
    "embedding": '[memory.embedding]\nurl = "http://example.org"\n',
    "embedding type": 'memory.embedding.type = "ollama"\n',
    "store": '[memory.store]\npath = "x.db"\n',
    "sources": '[[memory.sources]]\ntype = "workspace"\npath = "x"\n',
    "no sources": "memory.sources = []\n",
    "retrieval": '[[memory.retrieval]]\ntype = "words"\n',
    "reranking": '[memory.reranking]\ntype = "x"\n',
    "plugins": '[plugins]\ndisabled = ["x"]\n',
    "trust": 'trusted_projects = ["/"]\n',
    "chunking, of an index that others share": CUT,
    "a variable": '[memory.chunking]\ntype = "${HOME}"\n',
    "a variable in an array": '[memory.chunking]\nnames = ["x", ["${HOME}"]]\n',
    "a variable in a table in an array": '[memory.chunking]\nnames = [1, {x = "${HOME}"}]\n',
    "a variable in an array of tables": '[[memory.chunking.deep]]\nx = "${HOME}"\n',
    "a path outside": '[memory.chunking]\nvocabulary = "../x"\n',
    "an absolute path": '[memory.chunking]\nvocabulary = "/etc/passwd"\n',
    "a path at home": '[memory.chunking]\nvocabulary = "~/x"\n',
    "an absolute path in an array": '[memory.chunking]\nvocabulary = ["/etc/passwd"]\n',
    "a quoted place": '["memory.chunking"]\nx = 1\n',
    "an array for a table": "[[memory.chunking]]\nx = 1\n",
}


class TestTrust:
    def test_a_project_may_set_how_rankings_are_merged(self, load):
        assert load("", FREE).fusion.type == "weighted"

    def test_a_project_may_set_how_the_text_of_its_own_memory_is_cut(self, tmp_path):
        work, config = tmp_path / "work", tmp_path / "config.toml"
        (work / ".klaw").mkdir(parents=True)
        (work / "klaw.toml").write_text(CUT)
        config.write_text(f'project_memories = ["{work.resolve()}"]\n')
        found = load_config(config_file=config, directory=work, environment=EMPTY)
        assert (found.data_dir, found.chunking.options) == (work / ".klaw", {"max_tokens": 100})
        for options in ({"data_dir": tmp_path / "data"}, {"environment": {"KLAW_DATA_DIR": str(tmp_path)}}):
            with pytest.raises(ConfigError, match="klaw init --here"):
                load_config(**{"config_file": config, "directory": work, "environment": EMPTY, **options})

    @pytest.mark.parametrize("project", BOUND.values(), ids=BOUND)
    def test_a_project_may_set_nothing_else(self, problems, project):
        found = problems("", project, environment={"HOME": "/home/me"})
        assert any("klaw.toml: a project may not" in problem and "klaw config trust" in problem for problem in found)

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("embedding", lambda config: config.embedding.options["url"] == "http://example.org"),
            ("store", lambda config: config.store.options == {"path": "x.db"}),
            ("sources", lambda config: [source.options["path"] for source in config.sources] == ["x"]),
            ("plugins", lambda config: config.disabled_plugins == ("x",)),
            ("a variable", lambda config: config.chunking.type == "/home/me"),
            ("an absolute path", lambda config: config.chunking.options["vocabulary"] == "/etc/passwd"),
        ],
    )
    def test_a_trusted_project_may_set_anything(self, load, name, found):
        assert found(load("", BOUND[name], trusted=True, environment={"HOME": "/home/me"}))

    def test_trust_in_a_directory_does_not_include_its_parents_or_subdirectories(self, load, problems, tmp_path):
        project = BOUND["store"]
        work = (tmp_path / "work").resolve()
        for other in (work.parent, work / "below", Path(f"{work}-more")):
            assert problems(f'trusted_projects = ["{other}"]\n', project)
        assert load(f'trusted_projects = ["{work}"]\n', project).store.options == {"path": "x.db"}

    def test_a_string_instead_of_a_list_of_paths_is_rejected(self, problems, tmp_path):
        found = problems(f'trusted_projects = "{tmp_path.resolve()}/work"\n', BOUND["store"])
        assert any("a project may not set memory.store.path" in problem for problem in found)
        assert any("trusted_projects: expected an array" in problem for problem in found)

    def test_a_project_cannot_trust_itself(self, problems, tmp_path):
        project = f'trusted_projects = ["{(tmp_path / "work").resolve()}"]\n{BOUND["store"]}'
        assert any("a project may not set trusted_projects" in problem for problem in problems("", project))

    def test_trust_follows_the_real_directory(self, load, tmp_path):
        assert load("", BOUND["store"], trusted=True).store.options == {"path": "x.db"}
        (tmp_path / "link").symlink_to("work")
        found = load_config(config_file=tmp_path / "home" / "config.toml", directory=tmp_path / "link", environment={})
        assert found.store.options == {"path": "x.db"}


def test_leaves_have_dotted_names():
    table = {"a": {"b": 1, "c d": {}}, "e": [{"f": 2}, {"g": 3}], "h": [], "i": [1]}
    assert list(leaves(table)) == [("a.b", 1), ("e[0].f", 2), ("e[1].g", 3), ("h", []), ("i", [1])]


def test_a_shown_value_is_short_and_on_one_line():
    assert shown("a\nb") == "'a\\nb'"
    assert len(shown("x" * 10_000)) < 100
    assert shown(16**6000) == "a very large number"
