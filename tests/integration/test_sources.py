"""Sources of plugins and of the configuration: one that fails costs only itself, and no run goes by where it began."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import define, field

from klaw_core import (
    API,
    Component,
    ConfigError,
    Divisible,
    Document,
    Entry,
    Folder,
    Forgetful,
    Forgettable,
    KlawError,
    Located,
    NoOptions,
    NotFoundError,
    PluginContractError,
    PluginError,
    Removable,
    RowSource,
    Shrinking,
    SkippedEntry,
    Source,
    WorkspaceError,
)

MOMENT = datetime(2026, 2, 24, 12, tzinfo=UTC)


@define
class Mail(Source):
    """A source of letters, whose server may be away at a method, and which may skip a letter."""

    letters: dict[str, str] = field(factory=dict)
    away: str = ""
    skipped: dict[str, SkippedEntry] = field(factory=dict)
    origin = "mail"

    def scan(self):
        if self.away == "scan":
            raise RuntimeError("server away")
        return [Entry(path) for path in self.letters]

    def read(self, entry, /):
        if self.away == "read":
            raise SystemExit("server away")
        if entry.path in self.skipped:
            return self.skipped[entry.path]
        return Document(entry.path, self.letters[entry.path], "letter", "mail", MOMENT)


class Accident:
    """A class that has methods and attributes named like every ability, and uses them for something else."""

    excluded = "three"
    include = exclude = version = None
    root = Path("/somewhere")
    workspace = property(lambda self: self.called("workspace"))

    def called(self, *_given, **_named):
        raise AssertionError("a method was called that the source does not declare")

    remove = forget = forgotten = changed = locate = file_of = file_text = documents_of = called
    part = forget_part = carry_over = why_left_out = called

    def stamp(self):
        """A method, which compares equal for ever."""


@define
class AccidentalMail(Accident, Mail):
    """A source with the attributes of a mailbox."""


@pytest.fixture
def mail(home):
    source = Mail({"mail/1": "the pelican", "mail/2": "the heron"})
    home.extra.append(("source", Component("mail", NoOptions, lambda _options, _place: source, API)))
    return source


def found(memory, query):
    return {result.path for result in memory.search(query, mode="fts")}


class TestAPluginsSource:
    @pytest.mark.parametrize("method", ["scan", "read"])
    def test_a_failing_source_does_not_affect_others(self, home, mail, check, method):
        home.write("a.md", "an otter")
        with home.open(sources=[{"type": "mail"}]) as memory:
            memory.index(home.notes)
            memory.index()
            home.write("b.md", "a zebra")
            mail.letters["mail/3"] = "the crane"
            mail.away = method
            report = memory.index()
            (skipped,) = report.skipped
            assert (skipped.path, skipped.keep, report.added, report.removed) == ("mail", True, 1, 0)
            assert "the source 'mail'" in skipped.reason
            assert "server away" in skipped.reason
            assert found(memory, "zebra pelican crane") == {"notes/b.md", "mail/1"}, "what it had stays"
            mail.away = ""
            assert memory.index().skipped == ()
            assert found(memory, "crane") == {"mail/3"}
            check(memory)

    @pytest.mark.parametrize("method", ["scan", "read"])
    @pytest.mark.parametrize("embedding", [None, "counting:another"])
    def test_a_reindex_keeps_what_is_indexed_of_a_failing_source(self, home, mail, check, method, embedding):
        mail.letters["mail/a"] = "about the harbour"
        with home.open(sources=[{"type": "mail"}]) as memory:
            memory.index()
            memory.save("a lantern")
            mail.away = method
            report = memory.reindex(embedding)
            assert report.skipped[0].keep
            assert memory.search("harbour", mode="vector")[0].path == "mail/a"
            assert memory.search("lantern", mode="fts")
            check(memory)
            mail.away = ""
            assert memory.reindex(embedding).skipped == ()
            check(memory)

    def test_a_failing_source_is_in_the_skipped_files(self, home, mail):
        mail.away = "scan"
        with home.open(sources=[{"type": "mail"}]) as memory:
            (skipped,) = memory.index().skipped
            assert "server away" in skipped.reason

    @pytest.mark.usefixtures("mail")
    def test_a_failure_of_an_index_is_not_reported_as_one_of_the_source(self, home, monkeypatch):
        with home.open(sources=[{"type": "mail"}]) as memory:
            words = next(
                configured.retriever
                for configured in memory._assembly.retrievers
                if not configured.retriever.needs_vectors
            )

            def fail(*_):
                raise ValueError("a defect")

            monkeypatch.setattr(type(words), "add", fail)
            with pytest.raises(PluginError, match="a defect"):
                memory.index()

    def test_skipped_documents_are_kept_or_removed_as_the_source_says(self, home, mail, check):
        with home.open(sources=[{"type": "mail"}]) as memory:
            memory.index()
            mail.skipped["mail/1"] = SkippedEntry("mail/1", "the server does not answer", keep=True)
            mail.skipped["mail/2"] = SkippedEntry("mail/2", "is empty", keep=False)
            assert memory.index().removed == 1
            assert found(memory, "pelican heron") == {"mail/1"}
            check(memory)

    def test_a_source_must_say_whether_skipped_documents_are_kept(self):
        with pytest.raises(TypeError, match="keep"):
            SkippedEntry("mail/1", "the server does not answer")


def test_a_failing_chunker_is_not_reported_as_a_failing_workspace(home, liars):
    home.write("a.md", "some text to cut")
    home.extra.append(("chunker", liars["chunker"]))
    with home.open(chunking={"type": "liar", "lie": "backwards"}) as memory:
        for directory in (home.notes, None):
            with pytest.raises(PluginContractError, match="LiarChunker"):
                memory.index(directory)


class TestAConfiguredWorkspace:
    @pytest.mark.parametrize("path", ["notes", "./notes", "../notes", "", "."])
    def test_a_relative_path_is_rejected(self, home, path):
        with pytest.raises(ConfigError, match=r"memory\.sources\[0\]: path: expected an absolute path"):
            home.open(sources=[{"type": "workspace", "path": path}])

    @pytest.mark.parametrize(
        "options",
        [{"name": "a/b"}, {"name": ".hidden"}, {"name": "line\nbreak"}, {"path": "/x/.hidden"}, {"path": "/x/.."}],
    )
    def test_an_ambiguous_name_is_rejected(self, home, options):
        with pytest.raises(ConfigError, match=r"memory\.sources\[0\]: name: .* is not a valid workspace name"):
            home.open(sources=[{"type": "workspace", "path": str(home.notes), **options}])

    @pytest.mark.parametrize(("name", "origin"), [("", "notes"), ("mine", "mine")])
    def test_it_is_indexed_under_its_name(self, home, monkeypatch, name, origin):
        home.write("a.md", "an otter")
        monkeypatch.setenv("HOME", str(home.root))
        with home.open(sources=[{"type": "workspace", "path": "~/notes", "name": name}]) as memory:
            memory.index()
            assert found(memory, "otter") == {f"{origin}/a.md"}
            assert memory.get(f"{origin}/a.md").file == home.notes / "a.md"

    def test_removing_the_table_removes_the_workspace(self, home):
        home.write("a.md", "an otter")
        with home.open(sources=[{"type": "workspace", "path": str(home.notes), "name": "mine"}]) as memory:
            with pytest.raises(WorkspaceError, match="belongs to the configured source 'mine'") as caught:
                memory.index(home.notes)
            assert caught.value.hint == "`klaw index` indexes it"
            memory.index()
            with pytest.raises(NotFoundError, match="mine is a source in the configuration") as caught:
                memory.forget("mine/")
            assert caught.value.hint == "remove its [[memory.sources]] table, then `klaw forget mine/`"
        with home.open() as memory:
            assert memory.forget("mine/").paths == ("mine/a.md",)

    def test_the_root_has_a_name_too(self, home):
        with home.open(sources=[{"type": "workspace", "path": "/"}]) as memory:
            assert [source.origin for source in memory._sources.all()] == ["root"]


def test_an_empty_path_is_rejected(home, memory, monkeypatch):
    home.write("a.md", "an otter")
    monkeypatch.chdir(home.notes)
    with pytest.raises(WorkspaceError, match="empty"):
        memory.index("")
    assert memory.status().workspaces == {}
    memory.index(".")
    assert found(memory, "otter") == {"notes/a.md"}


class TestDeclaredAbilities:
    """A source can do what it inherits, whatever its methods are called."""

    def test_the_accident_has_the_names_of_all_abilities(self):
        abilities = (Divisible, Folder, Forgetful, Forgettable, Located, Removable, RowSource, Shrinking)
        names = {name for ability in abilities for name in dir(ability) if not name.startswith("_")}
        assert names
        assert names <= set(dir(AccidentalMail))

    def test_names_of_methods_promise_nothing(self, home):
        letters = {"mail/1": "the pelican", "mail/2": "the heron"}
        home.extra.append(("source", Component("mail", NoOptions, lambda *_: AccidentalMail(letters), API)))
        with home.open(sources=[{"type": "mail"}]) as memory:
            assert memory.index().added == 2
            letters["mail/2"] = "the bittern"
            assert memory.index().changed == 1, "a method named stamp is not a stamp"
            (status,) = (source for source in memory.sources() if source.origin == "mail")
            assert not status.can_forget
            assert status.root is None
            for target in ("mail/", "mail/1"):
                with pytest.raises(KlawError, match="mail"):
                    memory.forget(target)
            assert memory.status().excluded == {}
            assert memory.get("mail/1").content == "the pelican"
            assert memory.watch_paths() is not None
            memory.reindex()
            assert found(memory, "pelican") == {"mail/1"}
            with pytest.raises(KlawError):
                memory.workspaces.remove("mail")

    def test_an_object_that_inherits_no_source_is_refused_with_the_line_to_write(self, home):
        class Bare:
            origin = "mail"

            def scan(self):
                return []

            def read(self, entry, /):
                raise AssertionError(entry)

        home.extra.append(("source", Component("mail", NoOptions, lambda *_: Bare(), API)))
        with pytest.raises(PluginContractError, match=r"inherit klaw_core.Source \(class NAME\(Source\)"):
            home.open(sources=[{"type": "mail"}])
