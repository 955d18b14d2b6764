"""`klaw core` shows and changes core memory, with or without a database."""

import json

from klaw_core import Memory
from klaw_core.config.load import load_config


def core_file(user_home):
    return user_home / "data" / "klaw" / "core_memory.json"


def test_a_value_can_be_set_read_and_deleted(klaw, user_home):
    empty = klaw("core", "get")
    assert (empty.stdout, empty.stderr) == (
        "",
        "klaw: core memory is empty; to add a fact: klaw core set user name NAME\n",
    )
    assert klaw("core", "get", "user").stderr == "klaw: core memory has no facts in section 'user'\n"
    assert klaw("core", "set", "user", "name", "Ada", "Lovelace").stdout == "set user.name\n"
    assert klaw("core", "set", "agent", "learned_rules", "be brief").exit_code == 0
    assert klaw("core", "get", "user", "name").stdout == "Ada Lovelace\n"
    assert klaw("core", "get", "user").stdout == "name = Ada Lovelace\n"
    assert klaw("core", "get").stdout.startswith("## Core memory\n\n### About the user\n\n- name: Ada Lovelace\n")
    assert json.loads(core_file(user_home).read_text()) == {
        "user": {"name": "Ada Lovelace"},
        "agent": {"learned_rules": "be brief"},
    }
    assert klaw("core", "delete", "user", "name").stdout == "removed user.name\n"
    assert klaw("core", "get", "user").stdout == ""


def test_get_prints_json(klaw):
    assert json.loads(klaw("core", "set", "--json", "user", "name", "Ada").stdout) == {
        "section": "user",
        "key": "name",
        "value": "Ada",
    }
    assert json.loads(klaw("core", "get", "--json").stdout) == {"user": {"name": "Ada"}, "agent": {}}
    assert json.loads(klaw("core", "get", "user", "--json").stdout) == {"name": "Ada"}
    assert json.loads(klaw("core", "get", "user", "name", "--json").stdout) == "Ada"
    assert json.loads(klaw("core", "delete", "user", "name", "--json").stdout)["deleted"] is True


def test_a_missing_key_is_an_error_that_lists_the_existing_ones(klaw):
    klaw("core", "set", "user", "name", "Ada")
    for words in (("get", "user", "nam"), ("delete", "user", "nam")):
        result = klaw("core", *words)
        assert result.exit_code == 1
        assert "no key 'nam' in section 'user'" in result.stderr
        assert "known keys: name" in result.stderr


def test_an_unknown_section_is_a_usage_error(klaw):
    assert klaw("core", "set", "world", "name", "Ada").exit_code == 2


def test_a_value_is_read_from_standard_input(klaw):
    assert klaw("core", "set", "-q", "agent", "rules", "-", stdin="one\ntwo\n").stdout == ""
    assert klaw("core", "get", "agent", "rules").stdout == "one\ntwo\n"


def test_core_commands_do_not_need_a_database_and_create_none(klaw, user_home):
    klaw("core", "set", "user", "name", "Ada")
    assert not (user_home / "data" / "klaw" / "klaw.db").exists()
    (user_home / "data" / "klaw" / "klaw.db").write_bytes(b"rubbish" * 1000)
    assert klaw("core", "get", "user", "name").stdout == "Ada\n"


def test_a_broken_file_is_named_and_not_changed(klaw, user_home):
    klaw("core", "set", "user", "name", "Ada")
    core_file(user_home).write_text('{"user": {"name": "Ada",}}')
    result = klaw("core", "set", "user", "name", "Bob")
    assert result.exit_code == 1
    assert "core_memory.json is not core memory" in result.stderr
    assert core_file(user_home).read_text() == '{"user": {"name": "Ada",}}'


def test_python_reads_the_same_values(klaw):
    klaw("core", "set", "user", "name", "Ada")
    with Memory.open(load_config()) as memory:
        assert memory.core.get().user == {"name": "Ada"}


def test_the_history_lists_what_an_agent_changed(klaw):
    assert klaw("core", "history").stderr == "klaw: no agent has replaced or removed what you wrote there\n"
    klaw("core", "set", "user", "Name", "Ada")
    klaw("core", "set", "agent", "rules", "one\ntwo")
    with Memory.open(config=load_config()) as memory:
        memory.call_tool("memory_core_update", {"section": "user", "key": "name", "value": "Bo"})
        memory.call_tool("memory_core_delete", {"section": "agent", "key": "rules"})
    assert klaw("core", "get", "user", "name").stdout == "Bo\n"
    assert klaw("core", "get", "agent").stdout == ""
    printed = klaw("core", "history").stdout
    assert "user.Name = Ada  (changed by agent, 20" in printed
    assert "agent.rules = one" in printed
    assert "rules" not in klaw("core", "history", "user").stdout
    (found,) = json.loads(klaw("core", "history", "agent", "Rules", "--json").stdout)
    assert (found["value"], found["trust"], found["by"]) == ("one\ntwo", "owner", "agent")
    assert klaw("core", "delete", "agent", "rules").exit_code == 0
    assert klaw("core", "history", "agent", "--json").stdout == "[]\n"
