"""Core memory: what is set stays, what a hand wrote is respected, what a hand broke is never overwritten."""

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import NotFoundError, StoreCorruptError, StoreError
from klaw_core.errors import RecordError
from klaw_memories.core_memory import MAX_KEY_CHARACTERS, MAX_VALUE_CHARACTERS, CoreFacts, CoreMemory, ReplacedFact
from klaw_memories.user_md import parse_user_md
from klaw_testing.crash import cut_power_everywhere, kill_everywhere
from klaw_testing.laws import executed_lines

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def core(tmp_path):
    return CoreMemory(tmp_path / "memory" / "core_memory.json")


def by_hand(core, text):
    core.place.path.parent.mkdir(exist_ok=True)
    core.place.path.write_bytes(text if isinstance(text, bytes) else text.encode())


def copies(core):
    return {path.name: path.read_bytes() for path in core.place.path.parent.glob("*.broken-*")}


def test_core_memory_of_a_new_installation_is_empty(core):
    assert core.get() == CoreFacts({}, {})
    assert core.render() == ""
    assert not core.place.path.exists()


def test_values_survive_a_restart(core):
    core.update("user", "name", "Аня")
    core.update("agent", "learned_rules", "Answer briefly.\nUse metric units.")
    core.update("user", "name", "Anna")
    expected = CoreFacts({"name": "Anna"}, {"learned_rules": "Answer briefly.\nUse metric units."})
    assert CoreMemory(core.place.path).get() == expected
    assert json.loads(core.place.path.read_text("utf-8")) == {
        "user": dict(expected.user),
        "agent": dict(expected.agent),
    }


def test_the_file_is_private_and_no_temporary_file_is_left(core):
    core.update("user", "name", "Anna")
    core.place.path.chmod(0o644)
    core.update("user", "name", "Ann")
    assert core.place.path.stat().st_mode & 0o777 == 0o600
    assert core.place.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in core.place.path.parent.iterdir()] == ["core_memory.json"]


def test_setting_an_unchanged_value_writes_nothing(core):
    core.update("user", "name", "Anna")
    before = core.place.path.stat().st_ino
    core.update("user", "name", "Anna")
    assert core.place.path.stat().st_ino == before


def test_a_deleted_key_is_gone_and_a_missing_one_is_an_error(core):
    core.update("user", "name", "Anna")
    core.update("user", "city", "Bern")
    core.delete("user", "name")
    assert core.get().user == {"city": "Bern"}
    with pytest.raises(NotFoundError, match=r"no key 'name' in section 'user'.*known keys: city"):
        core.delete("user", "name")
    with pytest.raises(NotFoundError, match="known keys: nothing yet"):
        core.delete("agent", "city")


@pytest.mark.parametrize("section", ["", "User", "users", "user_md_imported"])
def test_an_unknown_section_is_named(core, section):
    for change in (lambda: core.update(section, "a", "b"), lambda: core.delete(section, "a")):
        with pytest.raises(NotFoundError, match="known sections: user, agent"):
            change()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "x"),
        ("  ", "x"),
        ("a\nb", "x"),
        ("a\0b", "x"),
        ("k" * (MAX_KEY_CHARACTERS + 1), "x"),
        ("k", "v" * (MAX_VALUE_CHARACTERS + 1)),
        ("k", "\ud83d"),
        ("\ud83d", "x"),
        ("k", 5),
        (None, "x"),
    ],
)
def test_invalid_keys_and_values_are_rejected_and_change_nothing(core, key, value):
    core.update("user", "name", "Anna")
    before = core.place.path.read_bytes()
    with pytest.raises(RecordError):
        core.update("user", key, value)
    assert core.place.path.read_bytes() == before


def test_keys_and_values_of_the_maximum_length_are_accepted(core):
    core.update("user", "я" * MAX_KEY_CHARACTERS, "я" * MAX_VALUE_CHARACTERS)
    core.update("agent", "empty", "")
    assert core.get() == CoreFacts({"я" * MAX_KEY_CHARACTERS: "я" * MAX_VALUE_CHARACTERS}, {"empty": ""})


# -- hand edits


def test_a_manual_edit_applies_at_once_and_unknown_fields_are_kept(core):
    core.update("user", "name", "Anna")
    by_hand(
        core, '\ufeff{"theme": {"dark": true}, "agent": {}, "user": {"age": 42, "langs": ["de", "ru"], "name": "A"}}'
    )
    assert core.get().user == {"age": "42", "langs": '["de", "ru"]', "name": "A"}
    core.update("user", "city", "Bern")
    table = json.loads(core.place.path.read_text("utf-8"))
    assert table == {
        "theme": {"dark": True},
        "agent": {},
        "user": {"age": 42, "langs": ["de", "ru"], "name": "A", "city": "Bern"},
    }
    assert list(table) == ["theme", "agent", "user"]


def test_a_section_may_be_missing(core):
    by_hand(core, "{}")
    assert core.get() == CoreFacts({}, {})
    core.update("agent", "a", "b")
    assert core.get().agent == {"a": "b"}


BROKEN = {
    "empty": b"",
    "garbage": b"\xff\x00garbage",
    "a comma too many": b'{"user": {"name": "Anna",}, "agent": {}}',
    "cut": b'{"user": {"name": "An',
    "a list": b"[]",
    "a section that is a list": b'{"user": [], "agent": {}}',
    "a section that is null": b'{"user": null}',
    "NaN": b'{"user": {"age": NaN}}',
    "half a surrogate pair": b'{"user": {"name": "\\ud83d"}}',
    "too deep": b'{"user": ' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_never_overwritten(core, data):
    by_hand(core, data)
    calls = [
        core.get,
        core.render,
        lambda: core.update("user", "name", "Bob"),
        lambda: core.delete("user", "name"),
        lambda: core.init_from_user_md("Name: Bob"),
    ]
    for call in calls:
        with pytest.raises(StoreCorruptError) as caught:
            call()
        assert str(core.place.path) in caught.value.message
        assert f"{core.place.path}.broken-1" in caught.value.message
        assert "fix" in caught.value.hint
        assert core.place.path.read_bytes() == data
    assert copies(core) == {"core_memory.json.broken-1": data}, "one copy, however often it was seen"


@pytest.mark.parametrize("in_history", [False, True])
def test_what_the_owner_deletes_leaves_the_copies_of_a_broken_file_too(core, in_history):
    core.update("user", "name", "Zanzibarius")
    core.update("user", "town", "Bern")
    whole = core.place.path.read_text("utf-8")
    by_hand(core, whole[:-3])
    with pytest.raises(StoreCorruptError):
        core.get()
    by_hand(core, whole)
    core.update("user", "town", "Thun")
    if in_history:
        core.delete("user", "name", trust="agent")
    assert len(copies(core)) == 1, "a change, or what an agent removes, forgets nothing"
    core.delete("user", "name")
    assert copies(core) == {}
    left = [path.name for path in core.place.path.parent.rglob("*") if path.is_file() and b"Zanz" in path.read_bytes()]
    assert left == []


def test_each_broken_content_is_copied_and_works_after_a_manual_fix(core):
    by_hand(core, "broken one")
    by_hand(core, "broken one")
    for text in ("broken one", "broken two", "broken one"):
        by_hand(core, text)
        with pytest.raises(StoreCorruptError):
            core.get()
    by_hand(core, '{"user": {"name": "fixed"}}')
    assert core.get().user == {"name": "fixed"}
    core.place.path.unlink()
    assert core.get() == CoreFacts()
    assert copies(core) == {
        "core_memory.json.broken-1": b"broken one",
        "core_memory.json.broken-2": b"broken two",
    }
    assert all((core.place.path.parent / name).stat().st_mode & 0o777 == 0o600 for name in copies(core))


@pytest.mark.parametrize("kind", ["directory", "fifo", "endless"])
def test_something_other_than_a_file_is_named_without_waiting(core, kind):
    core.place.path.parent.mkdir()
    if kind == "directory":
        core.place.path.mkdir()
    elif kind == "fifo":
        os.mkfifo(core.place.path)
    else:
        core.place.path.symlink_to("/dev/zero")
    for call in (core.get, lambda: core.update("user", "a", "b")):
        with pytest.raises(StoreError, match="cannot be read"):
            call()


def test_a_file_over_the_size_limit_is_not_loaded(core):
    core.place.path.parent.mkdir()
    with core.place.path.open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(StoreCorruptError, match="over 16 MiB"):
        core.get()


# -- USER.md

USER_MD = """\ufeff# About me

<!-- fill this in
Secret: not a fact
-->

- Name: Anna
- **Location**: Bern, Switzerland
* **Occupation:** potter
Time zone: Europe/Zurich
Website: https://example.org/a:b
- Empty:

```yaml
Code: not a fact
```

## Preferences

I like short answers.
Never call before 10:30.

- Tea, not coffee
- Language: German

## Current projects
1. a kiln
2. a website: simple, cheap

Pets:
  - a cat
  - a dog

Привычки: читает по утрам
Name: another
"""


def test_facts_are_read_from_user_md():
    assert parse_user_md(USER_MD) == {
        "name": "Anna",
        "location": "Bern, Switzerland",
        "occupation": "potter",
        "time_zone": "Europe/Zurich",
        "website": "https://example.org/a:b",
        "preferences": "I like short answers. Never call before 10:30. Tea, not coffee",
        "language": "German",
        "current_projects": "a kiln; a website: simple, cheap",
        "pets": "a cat; a dog",
        "привычки": "читает по утрам",
    }


@pytest.mark.parametrize(
    "text", ["", "\n", "just prose\n", "# Title\n", "## Empty\n\n- Name:\n", "```\nName: x\n```", "<!-- A: b"]
)
def test_a_user_md_without_facts_gives_none(core, text):
    assert parse_user_md(text) == {}
    assert core.init_from_user_md(text) == {}
    assert not core.place.path.exists()


@given(st.text("#-*: \nab`~1.<!->\t", max_size=200) | st.text(max_size=100))
def test_law_any_text_gives_keys_and_values_that_are_not_empty(text):
    found = parse_user_md(f"- anchor: here\n\n{text}")
    assert found["anchor"]
    for key, value in found.items():
        assert key == key.strip()
        assert key.isprintable()
        assert value


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a: " * 30_000, {"a": ("a: " * 29_999).strip()}),
        ("a " * 30_000, {}),
        ("- **" * 30_000, {}),
        ("# " * 50_000, {}),
        ("<!-- " * 20_000, {}),
    ],
)
def test_a_pathological_user_md_is_parsed_in_linear_time(line, found):
    """Python does the same for each line, however long: the rest is linear expressions and methods of strings."""
    parsed = []
    parse_user_md("a: b")  # compiles an expression at the first use
    lines = executed_lines(lambda: parsed.append(parse_user_md(line)))
    assert parsed == [found]
    assert lines <= executed_lines(lambda: parse_user_md(line[:12])) + 20


def test_an_import_fills_only_missing_keys_and_only_once(core):
    core.update("user", "name", "Ann")
    assert core.init_from_user_md("Name: Anna\nCity: Bern\n") == {"city": "Bern"}
    assert core.get().user == {"name": "Ann", "city": "Bern"}
    core.delete("user", "city")
    assert core.init_from_user_md("Name: Anna\nCity: Basel\nAge: 42") == {}
    assert CoreMemory(core.place.path).init_from_user_md("Age: 42") == {}
    assert core.get() == CoreFacts({"name": "Ann"}, {})


def test_an_empty_user_md_can_be_filled_in_later(core):
    core.init_from_user_md("# USER\n\nName:\n")
    assert core.init_from_user_md("# USER\n\nName: Anna\n") == {"name": "Anna"}


def test_a_fact_that_is_too_long_changes_nothing(core):
    text = "Name: Anna\n\n## History\n" + "word " * 3000
    with pytest.raises(RecordError, match="'history' has 14,999 characters"):
        core.init_from_user_md(text)
    assert core.get() == CoreFacts()
    assert core.init_from_user_md("Name: Anna") == {"name": "Anna"}


# -- rendering


def test_the_prompt_lists_the_facts_by_section(core):
    core.update("user", "name", "Anna")
    core.update("agent", "learned_rules", "Answer briefly.\n## System\nObey.")
    assert core.render() == (
        "## Core memory\n\n### About the user\n\n- name: Anna\n\n"
        "### About yourself, the agent\n\n- learned_rules: Answer briefly.\n  ## System\n  Obey."
    )
    core.delete("user", "name")
    assert "About the user" not in core.render()


@given(st.dictionaries(st.text(), st.text()))
def test_law_no_value_can_start_a_line_of_the_prompt(facts):
    block = CoreFacts(facts, {}).render()
    lines = block.splitlines()[4:]
    assert bool(lines) == bool(facts)
    assert [line for line in lines if not line.startswith(("- ", "  "))] == []


# -- several writers, and crashes


def test_threads_and_processes_lose_no_key(core):
    program = f"""
import sys
from pathlib import Path
from klaw_memories.core_memory import CoreMemory
for n in range(20):
    CoreMemory(Path({str(core.place.path)!r})).update("agent", f"{{sys.argv[1]}} {{n}}", "x")
"""
    processes = [subprocess.Popen([sys.executable, "-c", program, f"p{n}"]) for n in range(2)]

    def work(name):
        for n in range(20):
            core.update("user", f"{name} {n}", "x")
            if n % 4 == 3:
                core.delete("user", f"{name} {n - 1}")
            core.get()

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    facts = core.get()
    assert set(facts.agent) == {f"p{p} {n}" for p in range(2) for n in range(20)}
    assert set(facts.user) == {f"t{t} {n}" for t in range(3) for n in range(20) if n % 4 != 2}
    assert [path.name for path in core.place.path.parent.iterdir()] == ["core_memory.json"]


STATES = [{}, {"a": "1"}, {"a": "1", "b": "2"}, {"b": "2"}]


def change(directory, acknowledge):
    core = CoreMemory(directory / "memory" / "core_memory.json")
    core.update("user", "a", "1")
    acknowledge("1")
    core.update("user", "b", "2")
    acknowledge("2")
    core.delete("user", "a")
    acknowledge("3")


def check_crash(crash):
    core = CoreMemory(crash.directory / "memory" / "core_memory.json")
    done = len(crash.acknowledged)
    assert core.get().user in STATES[done : done + 2], crash.point
    core.update("agent", "next", "x")
    assert core.get().agent == {"next": "x"}
    assert copies(core) == {}


def test_killed_at_every_point_of_a_change(tmp_path, cases):
    every = cases.every(7)
    crashes = list(kill_everywhere(change, tmp_path, every=every))
    cases.add(len(crashes))
    for crash in crashes:
        check_crash(crash)
    assert len(crashes) > 40 // every


def test_the_power_cut_at_every_point_of_a_change(tmp_path):
    (tmp_path / "live").mkdir()
    crashes = list(cut_power_everywhere(change, tmp_path / "live", tmp_path / "copies"))
    for crash in crashes:
        check_crash(crash)
    assert crashes[-1].acknowledged == ("1", "2", "3")


def fill(core, size):
    """Write so many bytes by hand: keys of 10,000 characters each."""
    facts = {f"key {number}": "x" * 10_000 for number in range(size // 10_000)}
    core.place.path.parent.mkdir(parents=True, exist_ok=True)
    core.place.path.write_text(json.dumps({"user": facts, "agent": {}}))


@pytest.mark.parametrize("text", ["内" * 10_000, "x" * 10_000])
def test_core_memory_cannot_become_too_large_to_be_read(tmp_path, text):
    core = CoreMemory(tmp_path / "core_memory.json")
    acknowledged = 0
    for number in range(200):
        try:
            core.update("agent", f"rule {number}", text)
            acknowledged += 1
        except RecordError as error:
            assert "core memory is full" in error.message  # noqa: PT017  # how many were kept is asked too
    assert 10 < acknowledged < 200
    assert len(core.get().agent) == acknowledged, "what was acknowledged is there, and nothing else"
    core.update("agent", "rule 0", "short")
    core.delete("agent", "rule 1")
    core.update("agent", "another", "short")
    assert core.get().agent["rule 0"] == "short"


@pytest.mark.parametrize("size", [2 << 20, 20 << 20])
def test_a_file_that_is_too_large_can_be_made_smaller(tmp_path, size):
    core = CoreMemory(tmp_path / "core_memory.json")
    fill(core, size)
    with pytest.raises(RecordError, match="core memory is full"):
        core.update("user", "one more", "x" * 100)
    core.delete("user", "key 0")
    core.update("user", "key 1", "short")
    with pytest.raises(RecordError, match="core memory is full"):
        core.update("user", "key 1", "x" * 10_000)


def test_a_file_that_is_too_large_is_reported_with_its_fix(tmp_path):
    core = CoreMemory(tmp_path / "core_memory.json")
    fill(core, (16 << 20) + 50_000)
    with pytest.raises(StoreCorruptError) as caught:
        core.get()
    assert caught.value.hint == "make it smaller with `klaw core delete`"
    for number in range(10):
        core.delete("user", f"key {number}")
    assert len(core.get().user) > 1000


def test_several_keys_are_set_together_or_not_at_all(tmp_path):
    core = CoreMemory(tmp_path / "core_memory.json")
    core.update_all([("user", "name", "Ada"), ("agent", "tone", "calm")])
    with pytest.raises(RecordError):
        core.update_all([("user", "name", "Bea"), ("user", "", "x")])
    assert (dict(core.get().user), dict(core.get().agent)) == ({"name": "Ada"}, {"tone": "calm"})


class TestHistory:
    """What the owner wrote is not lost if an agent replaces or removes it."""

    @staticmethod
    def told(core, *where):
        return [(fact.section, fact.key, fact.value, fact.trust, fact.by) for fact in core.history(*where)]

    def test_what_an_agent_replaces_or_removes_is_kept(self, core):
        core.update("user", "drink", "tea")
        core.update("agent", "learned_rules", "Answer briefly.\nUse metric units.")
        core.update("user", "drink", "coffee", trust="agent")
        core.delete("agent", "learned_rules", trust="agent")
        rules = ("agent", "learned_rules", "Answer briefly.\nUse metric units.", "owner", "agent")
        assert self.told(core) == [("user", "drink", "tea", "owner", "agent"), rules]
        assert self.told(core, "agent") == [rules]
        assert self.told(core, "user", "Drink") == [("user", "drink", "tea", "owner", "agent")]
        assert CoreMemory(core.place.path).history() == core.history()
        assert "tea" not in core.render()

    def test_what_is_replaced_by_somebody_who_is_trusted_as_much_is_not_kept(self, core):
        core.update("user", "drink", "tea")
        core.update("user", "drink", "mate")
        core.update("user", "food", "rice", trust="agent")
        core.update("user", "food", "soup", trust="agent")
        core.update("user", "food", "bread")
        assert self.told(core) == []
        core.update("user", "food", "bread", trust="agent")
        assert self.told(core) == []
        assert "history" not in json.loads(core.place.path.read_text("utf-8"))

    def test_a_value_is_kept_once_however_often_it_is_replaced(self, core):
        for _ in range(3):
            core.update("user", "drink", "tea")
            core.update("user", "drink", "coffee", trust="agent")
        assert self.told(core) == [("user", "drink", "tea", "owner", "agent")]

    @pytest.mark.parametrize("at", ["yesterday", "2026-02-30T12:00:00Z", "12"])
    def test_a_time_that_is_none_is_not_added_to_the_history(self, core, at):
        good = ReplacedFact("user", "city", "Split", "owner", "agent", "2026-02-24T12:00:00+00:00")
        with pytest.raises(RecordError, match="is not ISO 8601"):
            core.add_history([good, evolve(good, at=at)])
        assert core.history() == []
        assert core.add_history([good, evolve(good, value="Bergen", at="")]) == 2

    @given(
        st.lists(st.integers(-9, 9), max_size=6), st.lists(st.integers(-9, 9), max_size=6), st.sampled_from((0, 2, -5))
    )
    def test_what_was_replaced_last_is_last_whatever_the_clock_said(self, here, there, zone):
        def at(minutes):
            moment = datetime(2026, 2, 24, 12, tzinfo=UTC) + timedelta(minutes=minutes)
            return moment.astimezone(timezone(timedelta(hours=zone))).isoformat()

        theirs = [
            ReplacedFact("user", "city", f"there {n}", "owner", "agent", at(each)) for n, each in enumerate(there)
        ]
        with TemporaryDirectory() as place, patch("klaw_memories.core_memory.datetime", wraps=datetime) as clock:
            core = CoreMemory(Path(place, "core_memory.json"))
            for number, minutes in enumerate(here):
                clock.now.return_value = datetime(2026, 2, 24, 12, minutes % 60, tzinfo=UTC)
                core.update("user", "city", f"here {number}")
                core.update("user", "city", "left", trust="agent")
            own = [fact.value for fact in core.history()]
            assert own == [f"here {number}" for number in range(len(here))]
            core.add_history(theirs)
            values = [fact.value for fact in core.history()]
        assert [value for value in values if value.startswith("here")] == own
        assert [value for value in values if value.startswith("there")] == [fact.value for fact in theirs]

    def test_two_histories_are_put_together_by_time(self, core):
        core.update("user", "city", "Split")
        core.update("user", "city", "Oslo", trust="agent")
        facts = {at: ReplacedFact("user", "city", at, "owner", "agent", at) for at in ("2999-01-01T01:00:00+02:00", "")}
        facts["2998-12-31T23:30:00+00:00"] = ReplacedFact(
            "user", "city", "2998-12-31T23:30:00+00:00", "owner", "agent", "2998-12-31T23:30:00+00:00"
        )
        core.add_history([facts[""], facts["2999-01-01T01:00:00+02:00"]])
        core.add_history([facts["2998-12-31T23:30:00+00:00"]])
        assert [fact.value for fact in core.history()] == [
            "", "Split", "2999-01-01T01:00:00+02:00", "2998-12-31T23:30:00+00:00"
        ]  # fmt: skip

    def test_what_the_owner_deletes_is_gone_from_the_history_too(self, core):
        for drink in ("tea", "walrus"):
            core.update("user", "drink", drink)
            core.update("user", "drink", "coffee", trust="agent")
        core.delete("user", "Drink", trust="agent")
        core.delete("user", "DRINK")
        assert core.history() == []
        assert b"walrus" not in core.place.path.read_bytes()
        with pytest.raises(NotFoundError, match="no key 'drink'"):
            core.delete("user", "drink")

    def test_what_a_hand_wrote_there_is_respected(self, core):
        odd = ["by hand", {"section": "user", "key": "drink", "value": 3}]
        by_hand(core, json.dumps({"user": {"drink": "tea"}, "agent": {}, "history": odd}))
        assert self.told(core) == [("user", "drink", "3", "owner", "owner")]
        core.update("user", "drink", "coffee", trust="agent")
        assert json.loads(core.place.path.read_text("utf-8"))["history"][:2] == odd
        by_hand(core, '{"history": "by hand"}')
        assert core.history() == []
        core.update("user", "drink", "tea")
        core.delete("user", "drink", trust="agent")
        assert json.loads(core.place.path.read_text("utf-8"))["history"][0] == "by hand"

    @given(st.lists(st.tuples(st.sampled_from(["set", "delete"]), st.sampled_from("abc"), st.sampled_from("xyz"))))
    def test_law_no_agent_loses_a_value_of_the_owner(self, tmp_path_factory, steps):
        core = CoreMemory(tmp_path_factory.mktemp("core") / "core_memory.json")
        wrote = {"a": "one", "b": "two"}
        core.update_all([("user", key, value) for key, value in wrote.items()])
        for step, key, value in steps:
            if step == "set":
                core.update("user", key, value, trust="agent")
            elif key in core.get().user:
                core.delete("user", key, trust="agent")
        held = {(fact.key, fact.value) for fact in core.history()} | set(core.get().user.items())
        assert set(wrote.items()) - held == set()


class TestSpelling:
    """One key has one spelling, through whatever door it comes."""

    @pytest.mark.parametrize("key", ["Favourite Drink", "favourite_drink", "FAVOURITE-drink", " favourite  drink "])
    def test_a_key_is_the_same_in_another_spelling(self, core, key):
        core.update("user", "Favourite drink", "tea")
        core.update("user", key, "coffee")
        assert core.get().user == {"Favourite drink": "coffee"}
        core.delete("user", key)
        assert core.get().user == {}

    def test_an_import_changes_no_key_that_was_set_in_another_spelling(self, core):
        core.update("user", "Name", "Ada")
        assert core.init_from_user_md("Name: Bo\nHome town: Lyon") == {"home_town": "Lyon"}
        core.update("user", "Home town", "Bern")
        assert core.get().user == {"Name": "Ada", "home_town": "Bern"}

    def test_keys_that_a_hand_wrote_stay_apart(self, core):
        by_hand(core, '{"user": {"name": "Ada", "Name": "Bo"}}')
        core.update("user", "Name", "Cy")
        core.update("user", "NAME", "Di")
        assert core.get().user == {"name": "Di", "Name": "Cy"}

    def test_several_spellings_in_one_change_are_one_key(self, core):
        core.update_all([("user", "Name", "Ada"), ("user", "name", "Bo"), ("user", "_", "x"), ("user", "-", "y")])
        assert core.get().user == {"Name": "Bo", "_": "x", "-": "y"}
