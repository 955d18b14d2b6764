"""Reading any configuration returns a Config or raises ConfigError, and converts no value."""

import os
from datetime import UTC
from importlib import import_module
from importlib.util import find_spec

import attrs
import tomlkit
from hypothesis import example, given, settings
from hypothesis import strategies as st

import klaw_rerank_basic.plugin
import klaw_testing.plugin
from klaw_core import ConfigError
from klaw_core.builtin import plugin
from klaw_core.config.layers import leaves, overlay
from klaw_core.config.load import load_config
from klaw_core.config.options import build_options
from klaw_core.config.tables import COMPONENTS, DEFAULTS
from klaw_core.values.config import Selection
from klaw_testing.laws import scaled

names = st.sampled_from(
    (*COMPONENTS, "memory", "plugins", "trusted_projects", "retrieval", "sources", "type", "weight", "disabled", "k")
)
keys = names | st.text(max_size=6)
scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(2**4000, 2**14000),  # larger ones, which Python does not write out, are among the examples
    st.floats(),
    st.sampled_from(["sqlite", "words", "rrf", "${HOME}", "${NOTHING}", "../x", "/etc/passwd"]),
    st.text(max_size=8),
    st.datetimes(timezones=st.just(UTC)),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
tables = st.dictionaries(keys, values, max_size=4)
memory_tables = st.fixed_dictionaries({"memory": st.dictionaries(keys, values, max_size=5)})

HOOKS = (
    plugin.klaw_embedders,
    plugin.klaw_chunkers,
    plugin.klaw_fusions,
    klaw_rerank_basic.plugin.klaw_rerankers,
    klaw_testing.plugin.klaw_stores,
    *([import_module("klaw_notes.plugin").klaw_sources] if find_spec("klaw_notes") else []),
)
AT_HAND = [component for hook in HOOKS for component in hook()]


def load(tmp_path_factory, user=None, project=None, **options):
    """Load from files with these bytes; return the configuration or None if it was refused."""
    root = tmp_path_factory.mktemp("config")
    (root / "config.toml").write_bytes(user or b"")
    if project is not None:
        (root / "klaw.toml").write_bytes(project)
    environment = {"HOME": os.sep, "KLAW_DATA_DIR": str(root)}
    try:
        return load_config(config_file=root / "config.toml", directory=root, environment=environment, **options)
    except ConfigError as error:
        refused = error
    assert refused.problems
    assert all("\n" not in problem for problem in refused.problems)
    return None


@given(tables | memory_tables)
@example({"memory": {"retrieval": [{"type": "words", "weight": 16**5000}]}})
@example({"memory": {"store": {"type": 16**5000}}})
@example({"memory": {"type": "x"}})
def test_any_table_is_a_configuration_or_a_config_error(tmp_path_factory, table):
    found = load(tmp_path_factory, overrides=table)
    if found is not None:
        assert all(isinstance(getattr(found, kind), Selection) for kind in COMPONENTS if kind != "language_model")
        assert {type(stage) for stage in found.reranking} <= {Selection}
        assert [part for part in found.retrieval if not 0 <= part.weight < float("inf")] == []


@given(tables | memory_tables)
def test_an_untrusted_project_changes_only_free_settings(tmp_path_factory, table):
    try:
        written = tomlkit.dumps(table).encode()
    except (ValueError, TypeError):  # not everything above can be written as TOML
        return
    found = load(tmp_path_factory, project=written)
    if found is not None:
        plain = load(tmp_path_factory)
        same = ("store", "embedding", "retrieval", "reranking", "sources", "disabled_plugins", "offline")
        assert [getattr(found, name) for name in same] == [getattr(plain, name) for name in same]
        assert "${" not in str([list(leaves(found.chunking.options)), list(leaves(found.fusion.options))])


@given(st.binary(max_size=60) | st.text("[]{}=.,\"'\n ab01_-:", max_size=60).map(str.encode))
def test_any_bytes_are_a_configuration_or_a_config_error(tmp_path_factory, data):
    load(tmp_path_factory, user=data)
    load(tmp_path_factory, project=data)


@given(st.sampled_from(AT_HAND), st.data())
@settings(max_examples=scaled(200))
def test_options_have_their_type_or_a_problem(component, data):
    fields = attrs.fields(component.options)
    some_keys = st.sampled_from([field.name for field in fields] or ["x"]) | keys
    table = data.draw(st.dictionaries(some_keys, values, max_size=3))
    problems = []
    options = build_options(component, Selection("kind", component.name, "memory.place", table), problems)
    assert (options is None) == bool(problems)
    if options is not None:
        for key, value in table.items():
            built = getattr(options, key)
            assert built == (tuple(value) if isinstance(value, list) else value)
            assert isinstance(built, bool) == isinstance(value, bool)


@given(tables, tables)
def test_overlay_prefers_the_upper_layer(lower, upper):
    assert repr(overlay(lower, {})) == repr(lower)
    assert repr(overlay({}, upper)) == repr(upper)
    merged = overlay(lower, upper)
    assert merged.keys() == lower.keys() | upper.keys()
    for key, value in upper.items():
        if not isinstance(value, dict):
            assert merged[key] is value


def test_the_defaults_are_never_changed(tmp_path_factory):
    before = repr(DEFAULTS)
    memory = {"fusion": {"k": 5}, "store": {"path": "x"}}
    load(tmp_path_factory, overrides={"memory": memory, "plugins": {"disabled": ["a"]}})
    assert repr(DEFAULTS) == before
