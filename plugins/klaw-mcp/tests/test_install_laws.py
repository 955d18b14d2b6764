"""``klaw mcp install`` and ``--remove`` change only lines of Klaw, for each agent and each odd file of its format."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from ruamel.yaml import YAML

from klaw_core import ConfigError
from klaw_mcp.clients import clients, with_server
from klaw_tools import jsonc

COMMAND = ["/bin/klaw", "mcp", "--data-dir", "/d"]
OLD = {"command": "a"}
PARSE = {".toml": tomllib.loads, ".json": jsonc.parse, ".yaml": YAML().load}

#: Files of people without Klaw; KEY is the key of the table of servers. An empty file is no JSON: `{}` is left of it.
ODD = {
    ".json": [
        "{}",
        "{}\n",
        "{\n}\n",
        "{ }",
        '{"a": 1}',
        '{ "a": 1 }\n',
        '{"a":1,}',
        '{\n"a": 1}',
        '{\n    "a": 1,\n    "b": [1, 2]\n}',
        '// mine\n{\n    "theme": "dark", // keep\n    /* all */ "list": [ 1, 2e3, ],\n}\n',
        '{\n\t"a": "x" // keep\n\t/* why */\n}\n\n',
        '{"KEY": {}}',
        '{ /* none */ "KEY": { } }',
        '{"a": {"b": 1}, "KEY": {/* none yet */}}',
        '{\n  "KEY": {},\n  "z": {}\n}\n',
        '{\n  "KEY": {\n  }\n}\n',
        '{\n  "KEY": { // none yet\n  },\n  "z": [1, 2,],\n}\n',
        '{"KEY": {"other": {"env": {}}}, "a": 1}',
        '{\n  "KEY": {\n    "other": {"url": "http://x"}, // note\n  },\n  "z": 1 // note, }\n}',
        '{\n  "KEY": {\n    "other": {} /* } */ } }',
        '{\n  "nan": NaN, "KEY": {\n    "one": {},\n\n    // of two\n    "two": {}\n  }\n}\n',
    ],
    ".toml": [
        "",
        "\n",
        "a = 1",
        "a = 1\n\n\n",
        "# mine\n",
        "# no end",
        '# mine\nmodel = "o3"\n\n[tui]\ntheme = "dark" # keep\n',
        "[KEY]\n",
        "[KEY]\n\n# none yet\n[z]\nnan = nan",
        '[KEY.other]\ncommand = "x"  # keep\n\n# of z\n[z]\n',
        'KEY.other.command = "x"\n',
        '  [ KEY . "other" ]\n  text = """\n[KEY.klaw]\n# no comment"""\nlist = [\n  "]", # [\n  {a = \'#\'},\n]\n\n\n',
        "[[z]]\na = '''\n'''''\n[[z]]\na = 2",
    ],
    ".yaml": [
        "",
        "# mine",
        "# mine\nGOOSE_MODEL: 'x' # keep\nlist:\n- 1\n",
        "---\na: 1\n\n",
        "a: 1",
        "KEY:\n",
        "KEY:",
        "KEY: # none yet\n\n# of z\nz: 1\n",
        "KEY: {}\n",
        "KEY: { }",
        "KEY: {other: {name: x}, more: {}}  # note\na: 1",
        "{a: 1, KEY: {}}",
        "{}",
        "KEY:\n    # note\n    other:\n        args:\n            - '1'\n            -   2\n    more: {}\n\nz:   1\n",
        "z: |\n  klaw:\n\n   x\nKEY:\n other:\n  name: x",
        "a: &a {x: 1}\nb: *a\nc: !own [1]\nKEY:\n  other: *a\n",
        "  a: 1\n  b: 2\n",
        "a: .nan\n",
    ],
}
#: Files of people that have Klaw, with what they wrote around it.
WITH = {
    ".json": [
        '{"KEY": {"klaw": {"command": "a"}}}',
        '{\n "KEY": {\n "one": {}, // of it\n    "klaw": {"command": "a"}, // behind\n // of two\n"b": {}}}',
    ],
    ".toml": [
        '[KEY.klaw]\ncommand="a"\n\n# Comment of other\n[other]\na=1',
        '# of one\n[KEY.one]\n\n# of it\n[KEY.klaw]\ncommand = "a" \n\n\n  # Comment of other\n\n[KEY.other]\n# end',
        '[KEY]\nklaw = {command = "a"}\n# of two\ntwo = {}\n',
        '[KEY]\n# of it\nklaw.command = "a"\n# of two\ntwo.a = 1',
    ],
    ".yaml": [
        "KEY:\n  klaw:\n    command: a\n  # note about other\n  other: {}\n",
        "KEY:\n    one: {}\n    # of it\n    klaw:\n        command: a\n\n    # note\n    other:   1\n\n# end",
        "KEY:\n  # of it\n  klaw: {command: a}\n# of z\nz: 1",
        "KEY: {one: 1, klaw: {command: a}, two: 2} # of z\n",
    ],
}


def variants(text):
    """Return a text with both ends of lines, and with and without a byte order mark."""
    for each in (text, text.replace("\n", "\r\n")):
        yield from (each, "\ufeff" + each)


@pytest.fixture(params=sorted(clients()))
def client(request):
    return clients()[request.param]


@pytest.fixture
def files(client):
    """Return functions that change and read a text as a file of the agent, and its corpora."""
    return Files(client)


class Files:
    """A text as a file of an agent."""

    def __init__(self, client):
        self.client = client
        self.file = client.user()
        self.server = client.describe(COMMAND)

    def corpus(self, texts):
        """Return the variants of the texts of this format, with its key."""
        return [each for text in texts[self.file.suffix] for each in variants(text.replace("KEY", self.client.keys[0]))]

    def changed(self, text, server):
        return with_server(self.client, self.file, text, server)

    def servers(self, text):
        found = PARSE[self.file.suffix](text.removeprefix("\ufeff")) or {}
        for key in self.client.keys:
            found = found.get(key) or {}
        return found


def test_every_format_has_files():
    assert {client.user().suffix for client in clients().values()} <= ODD.keys() & WITH.keys()


def test_removing_what_was_added_gives_the_same_bytes(files):
    texts = files.corpus(ODD)
    assert len(texts) > 40
    for text in texts:
        added = files.changed(text, files.server)
        assert files.servers(added)["klaw"] == files.server, text
        assert files.changed(added, files.server) == added
        assert files.changed(added, None) == text
        assert files.changed(text, None) == text
        old = files.client.describe(["a", "mcp"])
        changed = files.changed(added, old)
        assert files.servers(changed)["klaw"] == old, text
        assert files.changed(changed, None) == text
        assert files.changed(changed, files.server) == added


def test_what_is_written_ends_its_lines_as_the_file_does(files):
    texts = files.corpus(ODD)
    assert len(texts) > 40
    for text in texts:
        added = files.changed(text, files.server)
        if "\r\n" in text:
            assert added.count("\r\n") == added.count("\n")
        assert added.startswith("\ufeff") == text.startswith("\ufeff")


def test_nothing_around_the_entry_changes(files):
    texts = files.corpus(WITH)
    assert len(texts) > 7
    for text in texts:
        above, _, rest = text.partition("klaw")
        below = rest[found.start() :] if (found := re.search("(#|//) (behind|Comment|note|of )", rest)) else ""
        assert files.servers(text)["klaw"] == OLD
        updated = files.changed(text, files.server)
        assert files.servers(updated)["klaw"] == files.server
        again = files.servers(files.changed(updated, OLD))
        assert {**again, "klaw": OLD} == files.servers(text)
        assert again["klaw"]["command"] == OLD["command"]
        assert updated.startswith(above)
        assert updated.endswith(below)
        removed = files.changed(text, None)
        assert "klaw" not in files.servers(removed)
        assert files.changed(updated, None) == removed
        assert removed.endswith(below)
        assert notes(removed) == notes(updated) == notes(text)


def notes(text):
    return re.findall(r"(?:#|//) ?[^\r\n]*", text)


@pytest.mark.parametrize("name", [name for name, client in clients().items() if client.user().suffix != ".json"])
def test_what_people_append_below_the_entry_stays(name):
    files = Files(clients()[name])
    more = {".toml": "\n# Comment of other\n[other]\na=1", ".yaml": "\n# Comment of other\nother:  1"}[
        files.file.suffix
    ]
    appended = 0
    for text in files.corpus(ODD):
        added = files.changed(text, files.server)
        if added.endswith("\n") and "  b: 2" not in text:
            appended += 1
            whole = added + more
            assert files.changed(whole, OLD).endswith(more)
            assert files.changed(whole, None) in {text + more, text + more.removeprefix("\n")}
    assert appended > 10


NO_PLACE = {
    ".json": ['{"KEY": []}', '{"KEY": null}', '{"KEY": {"klaw": {}, "klaw": {}}}x', '{"KEY": 1, }, {'],
    ".toml": ["KEY = {}", "KEY = []", "KEY = 1", "KEY = {other = {a = 1}}", "[[KEY]]"],
    ".yaml": ["KEY: [", "KEY: []", "KEY: 1", "KEY: ~", "- 1", "KEY: {}\nKEY: {}", "a: &a {}\nKEY: *a", "a: 1\n...\n"],
}


def test_what_has_no_place_for_the_entry_is_refused_in_words(files):
    texts = files.corpus(NO_PLACE)
    assert len(texts) > 15
    for text in texts:
        with pytest.raises(ConfigError) as refused:
            files.changed(text, files.server)
        assert refused.value.hint == f"add the output of `klaw mcp install {files.client.name} --print` by hand"
        told = str(refused.value)
        assert [word for word in ("\n", "NoneType", "does not support", "TypeError", "indices") if word in told] == []


def test_yaml_and_toml_keep_the_indentation_of_others():
    goose, codex = clients()["goose"], clients()["codex"]
    before = "extensions:\n    other:\n        args:\n            - 1\n"
    added = with_server(goose, goose.user(), before, OLD)
    assert added == "extensions:\n    klaw:\n      command: a\n" + before.removeprefix("extensions:\n")
    before = '[mcp_servers.klaw]\ncommand="a"\n\n# Comment of other\n[other]\na=1'
    assert with_server(codex, codex.user(), before, None) == "# Comment of other\n[other]\na=1"


def test_an_entry_that_would_change_another_setting_is_refused():
    goose = clients()["goose"]
    with pytest.raises(ConfigError, match="change of another setting"):
        with_server(goose, goose.user(), "a: |\n  text", {"command": json.dumps("x")})
