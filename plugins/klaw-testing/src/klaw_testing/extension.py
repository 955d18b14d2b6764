"""The contract of an extension: the optional Protocols that it implements must be consistent.

class TestMyExtension(ExtensionContract):
    @pytest.fixture
    def memory(self, tmp_path):
        with Memory.open(...) as memory:
            yield memory          # with some data of the extension in it

    name = "mine"
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from klaw_core import (
    CheckedExtension,
    ComponentContext,
    Extension,
    Memory,
    Preference,
    PreferringExtension,
    SkippedEntry,
    SourcedExtension,
    StatusExtension,
    ToolExtension,
    discover,
    load_config,
    to_json,
)
from klaw_journals import Record, RecordedExtension
from klaw_testing.report import lacks
from klaw_tools import ContextExtension, ContextQuestion

_RANK_OF_OTHERS = 100  # the default of Component.rank


def shipped_extensions(data_dir: Path) -> Mapping[str, Extension]:
    """Return the extensions that come with Klaw and keep data, for a data directory, without a memory."""
    offers = discover().offers
    ours = [found[0].component for (kind, _), found in offers.items() if kind == "extension"]
    context = ComponentContext(data_dir, data_dir / "cache")
    shipped = sorted((item for item in ours if item.rank < _RANK_OF_OTHERS), key=lambda item: item.rank)
    built = {item.name: item.factory(item.options(), context) for item in shipped}
    return {name: extension for name, extension in built.items() if isinstance(extension, RecordedExtension)}


class ExtensionContract:
    """The laws of an extension; the subclass defines ``name`` and the fixture ``memory``."""

    name: ClassVar[str]

    @pytest.fixture
    def memory(self, tmp_path: Path) -> Iterator[Memory]:
        """Yield an open memory with the extension, and with some data of it."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @pytest.fixture
    def extension(self, memory: Memory) -> Extension:
        """Return the extension under test."""
        return memory.extension(self.name)

    def test_memory_finds_it_by_name_and_by_type(self, memory: Memory, extension: Extension) -> None:
        assert extension.name == self.name
        assert memory.extension(type(extension)) is extension

    def test_its_sources_have_only_its_own_origins(self, memory: Memory, extension: Extension) -> None:
        if isinstance(extension, SourcedExtension) and extension.origins:
            assert {source.origin for source in extension.sources()} <= set(extension.origins)
        assert len(memory.sources()) == len({(source.origin, source.collection) for source in memory.sources()})

    def test_a_reindex_keeps_the_number_of_its_documents(self, memory: Memory, extension: Extension) -> None:
        if not isinstance(extension, SourcedExtension) or not extension.sources():
            lacks("SourcedExtension with documents")
        memory.index()
        before = {name: count for name, count in memory.status().origins.items() if name in extension.origins}
        memory.reindex()
        after = {name: count for name, count in memory.status().origins.items() if name in extension.origins}
        assert before == after

    def test_its_tools_have_json_schemas_and_reject_unknown_arguments(
        self, memory: Memory, extension: Extension
    ) -> None:
        if not isinstance(extension, ToolExtension):
            lacks("ToolExtension")
        tools = extension.tools()
        assert len({tool.name for tool in tools}) == len(tools) > 0, "it says that it has tools"
        for tool in tools:
            assert json.loads(json.dumps(to_json(tool))) == to_json(tool)
            assert set(tool.required) <= set(tool.properties)
            assert all(schema.get("description") for schema in tool.properties.values())
            answer = memory.call_tool(tool.name, {"no such argument": 1})
            assert "error" in answer

    def test_an_undamaged_memory_has_no_errors_and_checks_are_repeatable(self, extension: Extension) -> None:
        if not isinstance(extension, CheckedExtension):
            lacks("CheckedExtension")
        assert [finding for finding in extension.check() if finding.severity == "error"] == []
        assert list(extension.check()) == list(extension.check())

    def test_its_records_are_json_and_importing_them_again_adds_nothing(self, extension: Extension) -> None:
        if not isinstance(extension, RecordedExtension):
            lacks("RecordedExtension")
        exported = list(extension.records())
        records = [item for item in exported if isinstance(item, Record)]
        assert len(records) + sum(isinstance(item, SkippedEntry) for item in exported) == len(exported)
        for record in records:
            assert record.kind in extension.record_kinds
            assert json.loads(json.dumps(dict(record.value))) == record.value
            extension.check_record(record)
        counts = extension.add(iter(records))
        assert (counts.added, counts.present) == (0, len(records))

    def test_its_context_items_have_text(self, extension: Extension) -> None:
        if not isinstance(extension, ContextExtension):
            lacks("ContextExtension")
        offered = [item.text.strip() for item in extension.offer(ContextQuestion("what do you know?"))]
        assert "" not in offered

    def test_it_is_asked_about_what_it_prefers(self, memory: Memory, extension: Extension) -> None:
        if not isinstance(extension, PreferringExtension):
            lacks("PreferringExtension")
        for question in ("lantern", "what happened on 2025-05-10?", "\N{NO-BREAK SPACE}", "x" * 1000):
            found = extension.prefer(question)
            assert found is None or isinstance(found, Preference)
            assert found is None or found.weight >= 0
        assert not memory.search("what happened on 2025-05-10?").notices

    def test_its_status_values_are_integers_or_strings(self, extension: Extension) -> None:
        if not isinstance(extension, StatusExtension):
            lacks("StatusExtension")
        assert {type(value) for value in extension.status().values()} <= {bool, int, str}


class KeepingExtensionContract(ExtensionContract):
    """The laws of an extension that keeps records; the subclass defines ``name`` and ``fill``."""

    def fill(self, memory: Memory, directory: Path) -> None:
        """Give the extension records; ``directory`` is for files."""
        raise NotImplementedError  # pragma: no cover  # the subclass replaces it

    @pytest.fixture
    def memory(self, tmp_path: Path) -> Iterator[Memory]:
        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        with Memory.open(config) as memory:
            self.fill(memory, tmp_path)
            memory.index()
            yield memory

    def test_the_extension_has_records_to_check(self, extension: Extension) -> None:
        assert isinstance(extension, RecordedExtension)
        assert any(isinstance(item, Record) for item in extension.records())
