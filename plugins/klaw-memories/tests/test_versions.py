"""A saved memory can be replaced: the new version is found, the old one stays in the history until it is forgotten."""

import os
import random
import stat
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Filters, Memory, NotFoundError, RecordError, load_config
from klaw_core.cli.program import cli
from klaw_core.values.metadata import Condition
from klaw_journals import Record
from klaw_memories.saved_extension import SavedExtension
from klaw_memories.versions import earlier, replaced


@pytest.fixture
def memory(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as opened:
        yield opened


def found(memory, query="drink"):
    return {result.content for result in memory.search(query)}


def history(memory, name):
    return [saved.text for saved in memory.extension(SavedExtension).history(name)]


@pytest.mark.promise("T12")
def test_the_new_version_is_found_and_the_old_one_stays_in_the_history(memory):
    tea = memory.save("the drink is tea")
    coffee = memory.save("the drink is coffee", supersedes=tea.path)
    assert found(memory) == {"the drink is coffee"}
    assert history(memory, tea.path) == history(memory, coffee.path) == ["the drink is tea", "the drink is coffee"]
    assert memory.get(tea.path).content == "the drink is tea"
    memory.index(force=True)
    memory.reindex()
    assert found(memory) == {"the drink is coffee"}


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_a_version_comes_after_the_one_that_it_replaces_whatever_the_clock_said(shifts):
    with TemporaryDirectory() as place:
        config = load_config(data_dir=place, environment={"KLAW_EMBEDDER": "none"})
        with Memory.open(config) as memory:
            moment, last = datetime(2026, 2, 24, 12, tzinfo=UTC), None
            for number, days in enumerate(shifts):
                moment += timedelta(days=days)
                saved = memory.save(f"version {number}", created_at=moment, supersedes=last)
                last = saved.path
            assert history(memory, last) == [f"version {number}" for number in range(len(shifts))]


def test_a_memory_is_found_by_its_tags(memory):
    memory.save("the drink is tea", tags=["home", "food"])
    memory.save("the drink is coffee", tags=["work"])
    found = memory.search("drink", filters=Filters(metadata=(Condition("tags", "=", "food"),)))
    assert [result.content for result in found] == ["the drink is tea"]


@pytest.mark.parametrize("tag", ["", " ", "two\nlines", "x" * 101, "AKIAIOSFODNN7EXAMPLE"])
def test_what_is_no_tag_is_refused(memory, tag):
    with pytest.raises(RecordError):
        memory.save("the drink is tea", tags=[tag])
    assert not memory.documents()


def test_a_replaced_memory_cannot_be_replaced_again(memory):
    tea = memory.save("the drink is tea")
    coffee = memory.save("the drink is coffee", supersedes=tea.path)
    with pytest.raises(RecordError, match="is replaced already") as error:
        memory.save("the drink is water", supersedes=tea.path)
    assert coffee.path in error.value.hint
    with pytest.raises(NotFoundError, match="no saved memory"):
        memory.save("the drink is water", supersedes="saved/2026-02-24/000000000000")


def test_the_text_of_an_old_version_can_be_saved_again(memory):
    tea = memory.save("the drink is tea")
    coffee = memory.save("the drink is coffee", supersedes=tea.path)
    again = memory.save("the drink is tea", supersedes=coffee.path)
    assert found(memory) == {"the drink is tea"}
    assert len({tea.path, coffee.path, again.path}) == 3
    plain = memory.save("the drink is coffee")  # its first copy is an old version
    assert plain.path != coffee.path
    assert found(memory) == {"the drink is tea", "the drink is coffee"}


@pytest.mark.promise("T14")
def test_forgetting_a_version_forgets_the_earlier_ones(memory, tmp_path):
    paths = [memory.save("the drink is tea").path]
    for drink in ("coffee", "water", "milk"):
        paths.append(memory.save(f"the drink is {drink}", supersedes=paths[-1]).path)
    memory.forget(paths[1])
    assert found(memory) == {"the drink is milk"}
    assert history(memory, paths[3]) == ["the drink is water", "the drink is milk"]
    memory.forget(paths[3])
    memory.index()
    assert found(memory) == set()
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not any(drink in left for drink in (b"tea", b"coffee", b"water", b"milk"))


def test_a_random_history_is_always_its_last_versions(memory):
    dice = random.Random(7)
    chains: list[list[str]] = []  # the paths of the versions of each memory
    texts: dict[str, str] = {}
    for number in range(60):
        step = dice.random()
        if step < 0.4 or not chains:
            chains.append([memory.save(f"drink {number}").path])
        elif step < 0.8:
            chain = dice.choice(chains)
            chain.append(memory.save(f"drink {number}", supersedes=chain[-1]).path)
        else:
            chain = chains.pop(dice.randrange(len(chains)))
            memory.forget(chain[-1])
            continue
        texts[(chains[-1] if step < 0.4 or len(chains) == 1 else chain)[-1]] = f"drink {number}"
        if number % 10 == 0:
            memory.index()
    current = {memory.get(chain[-1]).content for chain in chains}
    assert {result.content for result in memory.search("drink", 100, duplicates="keep")} == current
    assert current
    for chain in chains:
        assert len(history(memory, chain[0])) == len(chain)


def test_the_tool_replaces_and_tags(memory):
    old = memory.call_tool("memory_save", {"content": "the drink is tea", "tags": "food, home"})["saved"]
    new = memory.call_tool("memory_save", {"content": "the drink is coffee", "replaces": f"{old}:1-1"})
    assert "error" not in new
    assert found(memory) == {"the drink is coffee"}
    saved = memory.extension(SavedExtension).version(old)
    assert saved.tags == ("food", "home")
    assert "error" in memory.call_tool("memory_save", {"content": "x", "supersedes": "saved/none"})


@pytest.mark.promise("T13")
def test_an_agent_does_not_replace_what_the_owner_saved(memory):
    old = memory.save("the drink is tea").path
    answer = memory.call_tool("memory_save", {"content": "the drink is poison", "supersedes": old})
    assert "by the owner" in answer["error"]
    assert found(memory) == {"the drink is tea"}
    own = memory.call_tool("memory_save", {"content": "the drink is cocoa"})["saved"]
    memory.save("the drink is milk", supersedes=own)
    assert found(memory) == {"the drink is tea", "the drink is milk"}


def test_versions_survive_an_export(memory, tmp_path):
    old = memory.save("the drink is tea", tags=["food"])
    memory.save("the drink is coffee", supersedes=old.path)
    memory.export(tmp_path / "export.jsonl")
    config = load_config(data_dir=tmp_path / "other", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as other:
        other.import_(tmp_path / "export.jsonl")
        assert found(other) == {"the drink is coffee"}
        assert history(other, old.path) == ["the drink is tea", "the drink is coffee"]
        assert other.extension(SavedExtension).version(old.path).tags == ("food",)


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        monkeypatch.setenv("KLAW_EMBEDDER", "none")
        monkeypatch.delenv("VISUAL", raising=False)

        def run(*arguments):
            return CliRunner().invoke(cli, [*arguments, "--data-dir", str(tmp_path / "data")])

        return run

    def edit(self, tmp_path, monkeypatch, script):
        editor = tmp_path / "editor"
        editor.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", str(editor))

    def test_an_editor_makes_a_new_version(self, run, tmp_path, monkeypatch):
        old = run("save", "the drink is tea", "--tag", "food").stdout.strip()
        self.edit(tmp_path, monkeypatch, 'sed -i.old s/tea/mate/ "$1"; rm -f "$1.old"')
        new = run("save", "--edit", "--supersedes", old)
        assert new.exit_code == 0, new.stderr
        shown = run("history", old).stdout
        assert shown.index("the drink is tea") < shown.index("the drink is mate")
        assert shown.count("[food]") == 2
        assert shown.count("replaced") == shown.count("current") == 1

    def test_an_unchanged_text_saves_nothing(self, run, tmp_path, monkeypatch):
        old = run("save", "the drink is tea").stdout.strip()
        self.edit(tmp_path, monkeypatch, f"touch {os.devnull}")
        result = run("save", "--edit", "--supersedes", old)
        assert result.exit_code == 0
        assert "nothing saved" in result.stderr
        assert run("history", old).stdout.count("the drink") == 1

    def test_a_text_is_needed_without_an_editor(self, run):
        result = run("save")
        assert result.exit_code == 2
        assert "--edit" in result.stderr

    def test_a_replaced_memory_opens_no_editor(self, run, tmp_path, monkeypatch):
        old = run("save", "the drink is tea").stdout.strip()
        run("save", "the drink is coffee", "--supersedes", old)
        self.edit(tmp_path, monkeypatch, f'echo opened > "{tmp_path}/opened"; echo mate > "$1"')
        result = run("save", "--edit", "--supersedes", old)
        assert result.exit_code == 1
        assert "is replaced already" in result.stderr
        assert not (tmp_path / "opened").exists()

    def test_a_text_that_cannot_be_saved_is_kept_in_a_file(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        old = run("save", "the drink is tea").stdout.strip()
        self.edit(tmp_path, monkeypatch, 'echo "a long text" > "$1"')
        result = run("save", "--edit", "--supersedes", old, "--tag", "two\nlines")
        assert result.exit_code == 1
        (kept,) = tmp_path.glob("klaw-save-*.md")
        assert kept.read_text("utf-8") == "a long text"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert str(kept) in result.stderr.replace("\n", "")

    @pytest.mark.parametrize("editor", ["/nonexistent", "false"])
    def test_an_editor_that_does_not_run_is_named_with_its_variables(self, run, monkeypatch, editor):
        monkeypatch.setenv("EDITOR", editor)
        result = run("save", "--edit", "the drink is tea")
        assert result.exit_code == 1
        assert {word for word in ("VISUAL", "EDITOR", editor, "nothing saved") if word in result.stderr} == {
            "VISUAL",
            "EDITOR",
            editor,
            "nothing saved",
        }


def record(name, old=None, trust="owner"):
    return {"id": name, "supersedes": old, "trust": trust}


class TestReplacements:
    """Which records replace others, whatever an import or another machine says."""

    @pytest.mark.parametrize("names", ["a", "ab", "abc"])
    def test_records_in_a_circle_replace_nothing(self, names):
        records = {name: record(name, old) for name, old in zip(names, names[1:] + names[0], strict=True)}
        assert replaced(records) == set()
        assert earlier(records, ["a"]) == ["a"]
        records["x"] = record("x", "a")
        assert replaced(records) == {"a"}

    def test_nobody_replaces_what_is_by_somebody_who_is_trusted_more(self):
        classes = ("owner", "agent", "foreign")
        for place, old in enumerate(classes):
            for other, new in enumerate(classes):
                records = {"a": record("a", trust=old), "b": record("b", "a", new)}
                assert replaced(records) == ({"a"} if other <= place else set()), (old, new)
                assert earlier(records, ["b"]) == (["b", "a"] if other <= place else ["b"])

    def test_some_record_is_always_current(self):
        dice = random.Random(11)
        for _ in range(300):
            names = [f"{number}" for number in range(dice.randint(1, 7))]
            classes = ("owner", "agent", "foreign")
            records = {name: record(name, dice.choice([None, *names]), dice.choice(classes)) for name in names}
            current = records.keys() - replaced(records)
            assert current
            covered = {each for name in current for each in earlier(records, [name])}
            assert covered == records.keys()


def test_an_imported_record_of_a_lower_class_hides_nothing_of_the_owner(memory):
    old = memory.save("the drink is tea").path
    extension = memory.extension(SavedExtension)
    value = {**extension.version(old).record(), "id": "saved/2026-01-01/" + "a" * 32}
    bad = {**value, "text": "the drink is poison", "supersedes": old, "trust": "foreign"}
    extension.add(iter([Record("saved", {"value": bad})]))
    memory.index(force=True)
    assert found(memory) == {"the drink is tea", "the drink is poison"}
    assert history(memory, old) == ["the drink is tea"]
    memory.forget(bad["id"])
    assert found(memory) == {"the drink is tea"}


def test_two_programs_do_not_both_replace_one_memory(memory, monkeypatch):
    tea = memory.save("the drink is tea")
    extension = memory.extension(SavedExtension)
    real = extension.journal.add

    def add(*arguments):  # as if another program were faster
        monkeypatch.undo()
        memory.save("the drink is coffee", supersedes=tea.path)
        return real(*arguments)

    monkeypatch.setattr(type(extension.journal), "add", lambda _journal, *arguments: add(*arguments))
    with pytest.raises(RecordError, match="is replaced already"):
        memory.save("the drink is water", supersedes=tea.path)
    memory.index()
    assert found(memory) == {"the drink is coffee"}
