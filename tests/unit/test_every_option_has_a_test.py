"""Every option of every component that is installed from this checkout is read, and set by a test of its distribution.

A key that is no option is refused.
"""

import ast
import inspect
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest
from features import absent

import klaw_core
from klaw_core import API, Component, ConfigError, load_config
from klaw_core.config.options import build_options
from klaw_core.config.settings import MOVED, SETTINGS
from klaw_core.plugins.discover import discover
from klaw_core.values.config import CacheSettings, ConversationSettings, Selection, SyncSettings

ROOT = Path(__file__).parents[2]
#: A table in a text of TOML: ``name = …``, perhaps with its place before the name.
_SET = re.compile(r"(?:^|[\s.\[{,(])([a-z_0-9]+)\s*=(?!=)")


def options_classes() -> Iterator[type]:
    yield from (CacheSettings, ConversationSettings, SyncSettings)
    offered = {offer.component.options for offers in discover().whole.offers.values() for offer in offers}
    yield from sorted(offered, key=lambda kind: kind.__qualname__)


def home_of(kind: type) -> Path:
    """Return the directory of the distribution that defines a class."""
    file = Path(inspect.getfile(kind)).resolve()
    inside = file.relative_to(ROOT).parts
    return ROOT / "plugins" / inside[1] if inside[0] == "plugins" else ROOT


@cache
def nodes_of(home: Path) -> tuple[ast.AST, ...]:
    """Return what the tests of a distribution consist of, and those of a contract that it ships."""
    shipped = ROOT.glob("plugins/klaw-testing/src/klaw_testing/**/*.py")
    files = [*home.glob("tests/**/*.py"), *shipped]
    wanted = ast.keyword | ast.Dict | ast.Constant | ast.Call
    walked = (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    return tuple(node for node in walked if isinstance(node, wanted))


@cache
def named_in(home: Path) -> frozenset[str]:
    """Return what the tests of a distribution set: keywords of calls, keys of dictionaries, names in TOML."""
    found: set[str] = set()
    for node in nodes_of(home):
        if isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Dict):
            found.update(key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_SET.findall(node.value))
            found.update([node.value.rpartition(".")[2]] if node.value.isprintable() else [])
    return frozenset(found)


def given_in_order(kind: type) -> frozenset[str]:
    """Return the fields that a test gives a class by their place: the first ones."""
    names = [field.name for field in attrs.fields(kind) if field.init]
    calls = [node for node in nodes_of(home_of(kind)) if isinstance(node, ast.Call)]
    own = [call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == kind.__name__]
    return frozenset(names[: max((len(call.args) for call in own), default=0)])


def homes_of(kind: type, name: str) -> set[Path]:
    """Return the distributions whose tests may set a field: that of the class, and that of the one it comes from."""
    origins = {base for base in kind.__mro__ if attrs.has(base) and name in attrs.fields_dict(base)}
    return {home_of(base) for base in origins}


#: None where wheels are tested; the checkout's own run has them.
CLASSES = [kind for kind in options_classes() if Path(inspect.getfile(kind)).resolve().is_relative_to(ROOT)]


@pytest.mark.needs("klaw-facts")
@pytest.mark.skipif(not Path(klaw_core.__file__).is_relative_to(ROOT), reason="not installed from this checkout")
def test_the_classes_are_found():
    names = {kind.__name__ for kind in CLASSES}
    assert {"SyncSettings", "FactsOptions", "OpenAIModelOptions", "MarkdownOptions", "ReciprocalRankFusion"} <= names


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_every_option_has_a_test(kind):
    options = [field.name for field in attrs.fields(kind) if field.init]
    named = {name for name in options if any(name in named_in(home) for home in homes_of(kind, name))}
    assert set(options) - named - given_in_order(kind) == set()


@cache
def read_in(home: Path) -> frozenset[str]:
    """Return the names of the attributes that the sources of a distribution read; those of the core serve all."""
    found: set[str] = set()
    for file in (home / "src" if home != ROOT else home / "klaw_core").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return frozenset(found)


#: A table of the core that a distribution of the default install reads.
READERS = {ConversationSettings: "klaw-conversations"}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_every_option_is_read(kind):
    if READERS.get(kind) in absent():
        pytest.skip(f"needs {READERS[kind]}, which is not in this checkout")
    options = [field.name for field in attrs.fields(kind) if field.init]
    also = read_in(ROOT / "plugins" / READERS[kind]) if kind in READERS else set()
    read = {name for name in options if any(name in read_in(home) for home in homes_of(kind, name))} | also
    assert [name for name in options if name not in read] == []


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_a_key_that_is_no_option_is_refused(kind):
    problems = []
    component = Component("any", kind, lambda *_: None, API)
    assert build_options(component, Selection("source", "any", "place", {"no_such_key": 1}), problems) is None
    assert any(re.match(r"place\.no_such_key: unknown key", problem) for problem in problems), problems


@pytest.mark.parametrize("table", [*SETTINGS])
def test_an_unknown_key_of_a_table_of_the_memory_is_refused(table, tmp_path):
    given = {"memory": {table: {"no_such_key": 1}}}
    with pytest.raises(ConfigError, match=rf"unknown key memory\.{table}\.no_such_key"):
        load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": os.devnull}, overrides=given)


@pytest.mark.parametrize(("table", "key"), MOVED)
def test_a_key_that_was_moved_is_refused_with_its_new_place(table, key, tmp_path):
    given = {"memory": {table: {key: 1}}}
    with pytest.raises(ConfigError, match=rf"unknown key memory\.{table}\.{key}; replaced by {MOVED[table, key]}"):
        load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": os.devnull}, overrides=given)


@pytest.mark.needs("klaw-watch")
def test_every_setting_that_replaces_another_exists():
    moved = {*MOVED.values(), *(new for kind in CLASSES for new in getattr(kind, "moved", {}).values())}
    known = {name for kind in CLASSES for name in attrs.fields_dict(kind)}
    assert len(moved) > 5
    assert [new for new in moved if new.rpartition(".")[2] not in known] == []
