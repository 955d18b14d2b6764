"""Converters: plugins that turn the files of directories into text, as workspaces and third-party sources use them."""

import os
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from attrs import define, evolve, field

from klaw_core import (
    Component,
    Conversion,
    ConversionError,
    Converter,
    Document,
    Entry,
    LiveComponent,
    Memory,
    NotFoundError,
    PlainChunker,
    PluginError,
    Source,
    Span,
    VariantChunker,
    load_config,
)
from klaw_core.plugins.discover import discover
from klaw_core.values.config import Selection
from klaw_notes.conversion_cache import ConversionCache
from klaw_notes.converting import Converters, NamedConverter
from klaw_testing.converter import ConverterContract

WRITTEN = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)


@define(eq=False)
class ShoutConverter(Converter):
    """Reads ``*.shout``: capitals, pages between form feeds; it counts what it is asked for."""

    patterns: tuple = ("*.shout",)
    version: str = "1"
    on_request: bool = False
    max_bytes: int = 1000
    calls: list = field(factory=list)

    def convert(self, data, name, /):
        self.calls.append(name)
        if data.startswith(b"broken"):
            raise ConversionError("is not a shout")
        if data.startswith(b"slow"):
            raise ConversionError("took too long", keep=True)
        if data.startswith(b"bug"):
            raise RuntimeError("a defect")
        if data.startswith(b"wrong"):
            return "text"
        text = data.decode("utf-8", "replace").lower()
        return Conversion(text, "shouts:loud", {"title": "A shout", "author": "Ada"}, WRITTEN)


@define(eq=False)
class ShoutChunker(VariantChunker):
    """Cuts at form feeds; headings are numbers of pages, after the name of the variant."""

    name: str = "plain"

    def variant(self, name, /):
        return evolve(self, name=name)

    def split(self, text, _count_tokens, /):
        start = 0
        for number, part in enumerate(text.split("\f"), 1):
            if solid := part.strip():
                begin = text.index(solid, start)
                yield Span(begin, begin + len(solid), (self.name, f"Page {number}"))
            start += len(part) + 1


class TestShoutConverter(ConverterContract):
    files: ClassVar = {"a.shout": b"HELLO\n\fWORLD\n", "B.SHOUT": b"HI"}

    @pytest.fixture
    def converter(self):
        return ShoutConverter()


@pytest.fixture
def converter():
    return ShoutConverter()


@pytest.fixture
def open_memory(tmp_path, converter, monkeypatch):
    """Open a memory with the converter; each call opens the same data directory again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def opened(*others, **overrides):
        config = load_config(
            data_dir=tmp_path / "data",
            environment={"KLAW_CONFIG": os.devnull},
            overrides={"memory": {"embedding": {"type": "none"}, **overrides}},
        )
        config = evolve(config, cache_dir=tmp_path / "cache")
        live = [LiveComponent("converter", "shout", converter), LiveComponent("chunker", "shouts", ShoutChunker())]
        return Memory.open(config, components=[*live, *others])

    return opened


@pytest.fixture
def files(tmp_path):
    directory = tmp_path / "files"
    directory.mkdir()
    (directory / "note.md").write_text("# Note\n\nplain words\n")
    (directory / "Call.SHOUT").write_bytes(b"FIRST PAGE\n\fSECOND PAGE\nTHE HARBOUR\n")
    return directory


def test_files_of_installed_converters_are_indexed(open_memory, files):
    with open_memory() as memory:
        assert memory.index(files).added == 2
        (found,) = memory.search("harbour", mode="fts")
        assert found.path == "files/Call.SHOUT"
        assert found.heading == ("loud", "Page 2")
        assert (found.start_line, found.end_line) == (2, 3)
        assert found.created_at == WRITTEN
        assert found.metadata == {"title": "A shout", "author": "Ada"}
        assert memory.workspaces.kinds("files") == {".md": 1, ".shout": 1}


def test_get_prints_the_converted_text_by_line_and_by_heading(open_memory, files):
    with open_memory() as memory:
        memory.index(files)
        assert memory.get("files/Call.SHOUT", 3).content == "the harbour\n"
        assert memory.get("files/Call.SHOUT#page=2").content == "\fsecond page\nthe harbour\n"
        assert memory.get(f"{files}/Call.SHOUT#Page 1").content == "first page\n"
        assert memory.get("files/note.md#note").start_line == 1
        with pytest.raises(NotFoundError, match=r"has no section 'page=9'.*Page 1; Page 2"):
            memory.get("files/Call.SHOUT#page=9")
        with pytest.raises(NotFoundError, match="no indexed document"):
            memory.get("files/other.shout#page=1")


def test_an_unchanged_file_is_converted_once(open_memory, files, converter):
    with open_memory() as memory:
        memory.index(files)
        memory.index(files)
        memory.get("files/Call.SHOUT")
    with open_memory() as memory:
        assert memory.index(files).unchanged == 2
        assert converter.calls == ["Call.SHOUT"]
        (files / "Call.SHOUT").write_bytes(b"CHANGED")
        assert memory.index(files).changed == 1
        assert converter.calls == ["Call.SHOUT"] * 2
    converter.version = "2"
    with open_memory() as memory:
        assert memory.index(files).unchanged == 2
        assert converter.calls == ["Call.SHOUT"] * 3


def test_a_failed_conversion_names_the_file_and_the_others_continue(open_memory, files, converter):
    for name, data in {"a": b"broken", "b": b"bug", "c": b"wrong", "d": b" \n", "e": b"HI" * 2**23}.items():
        (files / f"{name}.shout").write_bytes(data)
    with open_memory() as memory:
        report = memory.index(files)
        assert report.added == 2
        reasons = {item.path: item.reason for item in report.skipped}
        assert reasons["files/a.shout"] == "is not a shout"
        assert "the converter 'shout', reading 'b.shout': RuntimeError: a defect" in reasons["files/b.shout"]
        assert "returned str, expected a Conversion" in reasons["files/c.shout"]
        assert reasons["files/d.shout"] == "is empty"
        assert reasons["files/e.shout"] == "is larger than 10,485,760 bytes (16,777,216)"
        calls = len(converter.calls)
        memory.index(files)
        # A reason is kept like a text; a defect is no reason.
        assert converter.calls[calls:] == ["b.shout", "c.shout"]
        converter.max_bytes = 2**25
    with open_memory() as memory:
        assert memory.index(files).added == 1


def test_chunks_of_a_file_that_failed_temporarily_stay(open_memory, files):
    with open_memory() as memory:
        memory.index(files)
        (files / "Call.SHOUT").write_bytes(b"slow")
        assert memory.index(files).skipped[0].reason == "took too long"
        assert memory.search("harbour", mode="fts")
        (files / "Call.SHOUT").write_bytes(b"broken")
        assert memory.index(files).removed == 1
        assert not memory.search("harbour", mode="fts")


def test_forgotten_and_deleted_files_leave_the_cache(open_memory, files, tmp_path):
    (files / "other.shout").write_bytes(b"OTHER")

    def kept():
        return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]

    with open_memory() as memory:
        memory.index(files)
        assert len(kept()) == 2
        memory.forget("files/Call.SHOUT")
        assert len(kept()) == 1
        (files / "other.shout").unlink()
        memory.index(files)
        assert kept() == []
        (files / "third.shout").write_bytes(b"THIRD")
        memory.index(files)
        memory.forget("files/")
        assert kept() == []


def test_a_file_that_is_forgotten_before_it_is_indexed_leaves_the_cache(open_memory, files, tmp_path):
    with open_memory() as memory:
        memory.index(files)
        before = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
        (files / "late.shout").write_bytes(b"LATE")
        assert memory.get("files/late.shout").content == "late"
        assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} > before
        memory.forget("files/late.shout")
        assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before


def test_two_memories_have_their_own_copies_of_files_of_one_name(open_memory, files, tmp_path, converter):
    with open_memory() as memory:
        memory.index(files)
    before = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    other = evolve(memory.config, data_dir=tmp_path / "other")
    with Memory.open(other, components=[LiveComponent("converter", "shout", converter)]) as second:
        second.index(files)
        assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} > before
        second.forget("files/")
    assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before


def test_a_forgotten_source_leaves_no_converted_text_where_klaw_notes_is_missing(open_memory, files, tmp_path):
    with open_memory() as memory:
        memory.index(files)
    config = evolve(memory.config, chunking=Selection("chunker", "plain", "memory.chunking"))
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    with Memory.open(config, registry=discover(disabled=["klaw-notes"])) as memory:
        memory.forget("files/")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_damaged_cache_counts_as_missing(open_memory, files, tmp_path, converter):
    with open_memory() as memory:
        memory.index(files)
        (kept,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        assert kept.stat().st_mode & 0o077 == 0
        for damage in (b"", b"junk", kept.read_bytes()[:-5]):
            kept.write_bytes(damage)
            assert memory.get("files/Call.SHOUT", 3).content == "the harbour\n"
        assert len(converter.calls) == 4


def test_files_are_converted_without_a_writable_cache(open_memory, files, tmp_path, converter):
    (tmp_path / "cache").write_text("in the way")
    with open_memory() as memory:
        assert memory.index(files).added == 2
        assert memory.get("files/Call.SHOUT", 3).content == "the harbour\n"
        assert len(converter.calls) == 2


def test_files_of_a_converter_on_request_need_an_include_pattern(open_memory, files, converter):
    converter.on_request = True
    with open_memory() as memory:
        assert memory.index(files).added == 1
        assert memory.workspaces.unread("files") == {".shout": 1}
        assert memory.index(files, include=["*.shout"]).added == 1


def test_own_patterns_replace_those_of_converters(open_memory, files, converter):
    with open_memory() as memory:
        assert memory.index(files, include=["*.md"]).added == 1
    assert not converter.calls


def test_notes_are_not_converted(open_memory, files, converter):
    converter.patterns = ("*.md", "*.txt", "*")
    with open_memory() as memory:
        memory.index(files)
        assert memory.search("plain words", mode="fts")[0].metadata == {}
    assert converter.calls == ["Call.SHOUT"]


def test_a_configured_source_uses_converters(open_memory, files):
    with open_memory(sources=[{"type": "workspace", "path": str(files)}]) as memory:
        assert memory.index().added == 2


def test_a_source_of_a_plugin_gets_the_converters(files, converter):
    def klaw_attachments(_options, context):
        return Attachments(Converters.of(context))

    @define(eq=False)
    class Attachments(Source):
        converters: object
        origin = "mail"

        def scan(self):
            return [Entry("mail/1/call.shout")]

        def read(self, entry, /):
            made = self.converters.convert(entry.path, b"BY MAIL")
            return Document(entry.path, made.text, "mail", "mail", WRITTEN, format=made.format)

    @define
    class NoOptions:
        pass

    from klaw_core.plugins.discover import discover
    from klaw_core.plugins.registry import Offer, Registry

    whole = discover()
    component = Component("mailbox", NoOptions, klaw_attachments, 2)
    registry = Registry(whole.plugins, {**whole.offers, ("source", "mailbox"): [Offer(component, "here")]})
    config = load_config(
        data_dir=files.parent / "data",
        environment={"KLAW_CONFIG": os.devnull},
        overrides={"memory": {"embedding": {"type": "none"}, "sources": [{"type": "mailbox"}]}},
    )
    live = [LiveComponent("converter", "shout", converter)]
    with Memory.open(evolve(config, cache_dir=files.parent / "cache"), registry=registry, components=live) as memory:
        assert memory.index().added == 1
        assert memory.search("mail", mode="fts")[0].path == "mail/1/call.shout"


def test_a_converter_without_valid_patterns_is_named(open_memory, files, converter):
    converter.patterns = (7,)
    with open_memory() as memory:
        assert memory.index(files).added == 1
        assert any("'shout' has the patterns" in problem for problem in memory.status().problems)


def test_the_first_converter_of_a_pattern_is_used(tmp_path):
    first, second = ShoutConverter(), ShoutConverter(patterns=("*.shout", "*.tar.gz", "README*"))
    named = [NamedConverter.of(name, item, None) for name, item in (("a", first), ("b", second))]
    installed = Converters(lambda: named, ConversionCache(tmp_path))
    for name in ("x/a.shout", "x/b.tar.gz", "x/readme.old"):
        installed.convert(name, b"HI")
    assert first.calls == ["a.shout"]
    assert second.calls == ["b.tar.gz", "readme.old"]
    assert not installed.reads("a.gz")
    with pytest.raises(ConversionError):
        installed.convert("x/a.gz", b"")


def test_without_converters_nothing_is_built(tmp_path):
    def build():
        raise AssertionError

    installed = Converters(build, ConversionCache(tmp_path))
    from klaw_notes.workspace import Workspace

    workspace = Workspace(tmp_path, "files", converters=installed)
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    assert [workspace.read(entry).text for entry in workspace.scan()] == ["a", "b"]


def test_a_transient_failure_is_tried_again_after_a_day(tmp_path):
    cache = ConversionCache(tmp_path)
    cache.put("x/a", "1", ConversionError("took too long", keep=True))
    with pytest.raises(ConversionError, match="took too long"):
        cache.get("x/a", "1")
    assert cache.get("x/a", "2") is None
    (kept,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    os.utime(kept, (0, 0))
    assert cache.get("x/a", "1") is None


def test_a_chunker_without_variants_splits_every_variant(open_memory):
    with open_memory(LiveComponent("chunker", "code", PlainChunker())) as memory:
        found = memory._assembly.chunker_of("code:python")
        assert isinstance(found.chunker, PlainChunker)


def test_an_invalid_table_is_an_error(open_memory):
    with pytest.raises(PluginError, match=r"klaw|converter"):
        open_memory(converters={"nothere": {}})
