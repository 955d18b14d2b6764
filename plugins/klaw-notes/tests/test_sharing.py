"""Shared workspaces: what a machine tells the others, and what it takes from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import NotFoundError, RecordError, WorkspaceError
from klaw_journals import FileJournals
from klaw_notes.patterns import forms
from klaw_notes.sharing import JOURNAL, Sharing, check_declaration, forgotten_notes
from klaw_notes.walking import Patterns
from klaw_notes.workspace import Workspace
from klaw_notes.workspace_list import Workspaces


class Machine:
    """A data directory with the workspace ``notes``."""

    def __init__(self, root, exclude=()):
        self.root = root
        root.mkdir()
        self.registry = Workspaces(root / "workspaces.json")
        self.registry.change(lambda known: known.update(notes=Workspace(root, "notes", exclude=exclude)))
        self.sharing = Sharing(self.registry)

    @property
    def workspace(self):
        return self.registry.named("notes")

    def records(self):
        return dict(FileJournals(self.root).records(JOURNAL).replay().records)

    def receive(self, *others):
        """Take the records of other machines over, as a synchronisation does."""
        journal = FileJournals(self.root).records(JOURNAL)
        told = {name: record for other in others for name, record in other.records().items() if "op" not in record}
        journal.settle(lambda held: list({**{record["id"]: record for record in held}, **told}.values()))

    def change(self, *add, remove=()):
        self.registry.change_patterns("notes", add=add, remove=remove)


@pytest.fixture
def pair(tmp_path):
    """Two machines that share their workspace; each excludes a note of its own."""
    one, two = Machine(tmp_path / "one", ("a.md",)), Machine(tmp_path / "two", ("b.md",))
    assert not one.sharing.share("notes")
    two.receive(one)
    assert two.sharing.share("notes")
    two.sharing.adopt()
    one.receive(two)
    one.sharing.adopt()
    return one, two


def patterns(*machines):
    return [set(machine.workspace.exclude) for machine in machines]


def test_machines_that_share_exclude_what_each_of_them_did(pair):
    assert patterns(*pair) == [{"a.md", "b.md"}] * 2


def test_a_private_workspace_tells_nothing(tmp_path):
    machine = Machine(tmp_path / "one", ("secret.md",))
    machine.sharing.publish()
    assert machine.sharing.adopt() == {}
    assert not (machine.root / "workspaces.jsonl").exists()


def test_what_is_excluded_and_included_travels(pair):
    one, two = pair
    one.change("c.md", remove=["b.md"])
    one.sharing.publish()
    two.receive(one)
    assert two.sharing.adopt() == {"notes": ("c.md",)}
    assert patterns(one, two) == [{"a.md", "c.md"}] * 2
    assert two.sharing.adopt() == {}


def test_a_change_during_a_run_is_kept_and_told_next_time(pair):
    one, two = pair
    one.change("c.md")
    one.sharing.publish()
    two.receive(one)
    two.change("d.md", remove=["a.md"])  # after its own run has begun
    two.sharing.adopt()
    assert patterns(two) == [{"b.md", "c.md", "d.md"}]
    two.sharing.publish()
    one.receive(two)
    one.sharing.adopt()
    assert patterns(*pair) == [{"b.md", "c.md", "d.md"}] * 2


def test_what_arrived_is_not_undone_by_a_run_that_ended_before_it_was_adopted(pair):
    one, two = pair
    one.change("c.md", remove=["a.md"])
    one.sharing.publish()
    two.receive(one)
    two.sharing.publish()  # the next run begins; nothing was adopted
    assert {name: record["value"] for name, record in two.records().items() if name.startswith("notes/")} == {
        "notes/a.md": "included",
        "notes/b.md": "excluded",
        "notes/c.md": "excluded",
    }
    two.sharing.adopt()
    assert patterns(*pair) == [{"b.md", "c.md"}] * 2


def test_patterns_of_names_follow_the_last_change(pair):
    one, two = pair
    one.registry.remember(one.root, include=["*.org"]) if (one.root / "x.org").write_text("x") else None
    one.sharing.publish()
    two.receive(one)
    two.sharing.adopt()
    assert one.workspace.include == two.workspace.include == ("*.org",)


def test_unsharing_is_for_all_and_keeps_the_patterns(pair):
    one, two = pair
    one.sharing.unshare("notes")
    two.receive(one)
    two.sharing.adopt()
    assert [machine.sharing.shared() for machine in pair] == [{}, {}]
    assert patterns(*pair) == [{"a.md", "b.md"}] * 2
    two.change("c.md")
    two.sharing.publish()
    assert "notes/c.md" not in two.records()
    with pytest.raises(NotFoundError, match="not shared"):
        two.sharing.unshare("notes")


def test_a_removed_workspace_leaves_the_others_alone(pair):
    _, two = pair
    two.registry.forget("notes")
    two.sharing.publish()
    assert [machine.sharing.shared()["notes"].is_here for machine in pair] == [True, False]
    assert two.sharing.adopt() == {}


@pytest.mark.parametrize("lost", ["removed", "list deleted"])
def test_notes_that_are_added_again_are_private_and_include_nothing_elsewhere(pair, lost):
    """The name alone does not share them: what was excluded everywhere would be indexed again everywhere."""
    one, two = pair
    if lost == "removed":
        two.registry.forget("notes")
    else:
        two.registry.file.unlink()
    two.registry.change(lambda known: known.update(notes=Workspace(two.root, "notes", exclude=("private.md",))))
    two.sharing.publish()
    one.receive(two)
    one.sharing.adopt()
    assert two.sharing.adopt() == {}
    assert patterns(one, two) == [{"a.md", "b.md"}, {"private.md"}]
    assert not [name for name in two.records() if "private" in name]
    assert not two.sharing.shared()["notes"].is_here


def test_notes_that_are_added_again_and_shared_include_nothing_elsewhere(pair):
    one, two = pair
    two.sharing.unshare("notes")
    two.registry.forget("notes")
    two.registry.change(lambda known: known.update(notes=Workspace(two.root, "notes")))
    assert not two.sharing.share("notes")
    two.sharing.publish()
    one.receive(two)
    one.sharing.adopt()
    two.sharing.adopt()
    assert patterns(one, two) == [{"a.md", "b.md"}] * 2


def test_sharing_again_includes_nothing_that_another_machine_has_excluded_unseen(pair):
    one, two = pair
    one.sharing.unshare("notes")
    two.change("c.md")
    two.sharing.publish()
    told = {name: record for name, record in two.records().items() if name == "notes/c.md"}
    FileJournals(one.root).records(JOURNAL).settle(lambda held: [*held, *told.values()])
    assert not one.sharing.share("notes")
    one.sharing.adopt()
    assert patterns(one) == [{"a.md", "b.md", "c.md"}]


@pytest.mark.parametrize("again", [False, True])
def test_what_was_not_followed_is_returned_again(pair, again):
    """A run that was killed has changed the list, and forgotten nothing."""
    one, two = pair
    one.change("c.md", remove=["a.md"])
    one.sharing.publish()
    two.receive(one)

    def fail(changed):
        assert changed == {"notes": ("c.md",)}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        two.sharing.adopt(fail)
    assert patterns(two) == [{"b.md", "c.md"}]
    if again:
        two.sharing.publish()
    assert two.sharing.adopt() == {"notes": ("c.md",)}
    two.sharing.publish()
    assert two.sharing.adopt() == {}
    one.receive(two)
    one.sharing.publish()
    one.sharing.adopt()
    assert patterns(*pair) == [{"b.md", "c.md"}] * 2


@pytest.mark.parametrize("field", ["exclude", "include", "collection"])
def test_a_damaged_record_shares_nothing_until_it_is_shared_again(pair, field):
    one, two = pair
    name = "notes" if field == "collection" else "/notes"
    damaged = {key: value for key, value in two.records()[name].items() if key != field}
    FileJournals(two.root).records(JOURNAL).settle(
        lambda held: [damaged if record["id"] == name else record for record in held]
    )
    one.change("c.md")
    one.sharing.publish()
    two.sharing.publish()
    assert two.sharing.adopt() == {}
    assert not [each for each in two.sharing.shared().values() if each.is_here]
    two.receive(one)
    assert two.sharing.share("notes")
    two.sharing.adopt()
    assert patterns(*pair) == [{"a.md", "b.md", "c.md"}] * 2


def test_sharing_again_includes_what_was_included_meanwhile(pair):
    one, _ = pair
    one.sharing.unshare("notes")
    one.change(remove=["a.md"])
    assert not one.sharing.share("notes")
    assert set(one.sharing.shared()["notes"].exclude) == {"b.md"}


def test_another_collection_and_an_unknown_workspace_are_errors(pair):
    one, two = pair
    two.registry.change(lambda known: known.update(notes=Workspace(two.root, "notes", collection="docs")))
    with pytest.raises(WorkspaceError, match="collection 'memory'"):
        two.sharing.share("notes")
    with pytest.raises(NotFoundError, match="unknown workspace"):
        one.sharing.share("nope")


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"id": "notes"},
        {"id": 7, "value": "shared"},
        {"id": "notes", "value": "shared", "collection": "memory"},
        {"id": "notes", "value": "shared", "collection": "memory", "include": "*.md"},
        {"id": "notes", "value": "shared", "collection": "memory", "include": [1]},
        {"id": "notes", "value": "excluded", "collection": "memory", "include": ["*.md"]},
        {"id": "notes/", "value": "excluded"},
        {"id": "/notes", "op": "joined", "exclude": [], "include": []},
        {"id": "/notes", "value": "excluded"},
        {"id": "notes/" + "x" * 5_000, "value": "excluded"},
        {"id": "notes/a\0b", "value": "excluded"},
    ],
)
def test_a_record_that_no_machine_writes_is_refused(record):
    with pytest.raises(RecordError):
        check_declaration(record)


def test_what_a_machine_writes_is_accepted(pair):
    told = [record for record in pair[0].records().values() if "op" not in record]
    assert len(told) == 3
    for record in told:
        check_declaration(record)


class TestRenaming:
    def test_a_workspace_that_is_shared_while_it_is_renamed_keeps_its_name(self, pair):
        """The check is made under the lock of the list, after a wait for whoever shares it."""
        one, _ = pair
        with pytest.raises(WorkspaceError, match="is shared") as caught:
            one.registry.rename("notes", "texts", check=lambda: one.sharing.refuse_shared("notes"))
        assert "unshare" in caught.value.hint
        assert patterns(*pair) == [{"a.md", "b.md"}] * 2

    def test_a_workspace_that_is_renamed_while_it_is_shared_takes_no_part(self, tmp_path, monkeypatch):
        machine = Machine(tmp_path / "one", ("a.md",))
        change = machine.sharing._change

        def renamed_then(records):
            change(records)
            machine.registry.rename("notes", "texts", check=lambda: machine.sharing.refuse_shared("notes"))

        monkeypatch.setattr(Sharing, "_change", lambda _self, records: renamed_then(records))
        with pytest.raises(NotFoundError, match="notes"):
            machine.sharing.share("notes")
        monkeypatch.undo()
        machine.sharing.publish()
        assert machine.records()["/notes"] == {"id": "/notes", "op": "left"}
        assert machine.sharing.adopt() == {}
        assert not machine.registry.named("texts").shared

    def test_notes_that_were_shared_once_do_not_take_the_place_of_others_by_their_new_name(self, pair, tmp_path):
        """Or the patterns that the new name lacks would be told as included."""
        one, two = pair
        one.sharing.unshare("notes")
        one.registry.change(
            lambda known: known.update(texts=Workspace(tmp_path / "x", "texts", exclude=("secret.md",)))
        )
        one.sharing.share("texts")
        two.receive(one)
        two.sharing.adopt()
        two.registry.change(lambda known: known.update(texts=Workspace(tmp_path / "y", "texts")))
        two.sharing.share("texts")
        two.registry.forget("texts")
        two.registry.rename("notes", "texts", check=lambda: two.sharing.refuse_shared("notes"))
        two.sharing.publish()
        one.receive(two)
        one.sharing.adopt()
        assert one.registry.named("texts").exclude == ("secret.md",)


class TestFormsOfUnicode:
    """macOS may write the name of the same note in other characters than Linux does."""

    NFC, NFD = "Cr\u00e8me br\u00fbl\u00e9e.md", "Cre\u0300me bru\u0302le\u0301e.md"

    @pytest.mark.parametrize(("here", "there"), [(NFC, NFD), (NFD, NFC)])
    def test_a_note_that_was_forgotten_on_one_machine_is_left_out_on_the_other(self, pair, here, there):
        one, two = pair
        (two.root / there).write_text("eggs")
        one.registry.exclude("notes", here)
        one.sharing.publish()
        two.receive(one)
        changed = two.sharing.adopt()
        assert f"notes/{there}" in forgotten_notes("notes", changed["notes"])
        assert [entry.path for entry in two.workspace.scan()] == []
        assert two.workspace.why_left_out(f"notes/{there}")
        two.change(remove=[there])  # restored there, by the name that it has there
        two.sharing.publish()
        one.receive(two)
        one.sharing.adopt()
        assert patterns(one, two) == [{"a.md", "b.md"}] * 2
        assert [entry.path for entry in two.workspace.scan()] == [f"notes/{there}"]

    @given(
        st.text("ae\u0301\u00e9\u00fc\u0308*?/.", min_size=1, max_size=6),
        st.text("ae\u0301\u00e9\u00fc\u0308/.", max_size=6),
    )
    def test_a_pattern_matches_every_form_of_a_name_or_none(self, pattern, name):
        said = {Patterns.of((given,)).match(form) for given in forms(pattern) for form in forms(name)}
        assert len(said) == 1
        assert {bool(Patterns.of((given,)).first(form)) for given in forms(pattern) for form in forms(name)} == said
