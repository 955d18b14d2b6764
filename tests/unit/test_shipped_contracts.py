"""The contracts that ship for others, run on what ships with the core."""

import os
from datetime import UTC, datetime

import pytest

from klaw_core import Chat, LanguageModelError, Memory, Message, NewDocument, Prompt, PromptMessage, Record
from klaw_core.config.load import load_config
from klaw_core.files.record_journal import FileJournal
from klaw_testing.extension import ExtensionContract, shipped_extensions
from klaw_testing.journal import RecordJournalContract
from klaw_testing.language_model import LanguageModelContract, ScriptedModel

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)


class TestFileJournal(RecordJournalContract):
    @pytest.fixture
    def journal(self, tmp_path):
        return FileJournal(tmp_path / "kept" / "records.jsonl")


class TestScriptedModel(LanguageModelContract):
    @pytest.fixture
    def model(self):
        return ScriptedModel(['{"city": "Kiel"}'])

    def test_an_expired_deadline_raises(self):
        pytest.skip("a script takes no time")


def test_a_scripted_model_never_violates_the_schema():
    schema = {"type": "object", "required": ["city"]}
    model = ScriptedModel(["no JSON", '{"town": "Kiel"}'])
    for _ in range(2):
        with pytest.raises(LanguageModelError):
            model.complete(Prompt((PromptMessage("user", "where?"),), schema=schema))


class ShippedContract(ExtensionContract):
    """A memory in which every shipped extension has data of its own."""

    @pytest.fixture
    def memory(self, tmp_path):
        notes = tmp_path / "notes"
        notes.mkdir()
        (notes / "a.md").write_text("# Kiln\n\nThe kiln is hot.\n", "utf-8")
        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        with Memory.open(config) as memory:
            memory.index(notes)
            memory.save("The boat is red.")
            memory.core.update("user", "name", "Ada")
            chat = Chat.parse("telegram_1")
            memory.conversations.append(Message("user", "Where is the key?", MOMENT, meta=chat.meta))
            memory.conversations.add_summary(chat, "Somebody looks for a key.")
            memory.add([NewDocument("d1", "The door is green.", {"tags": ["a", "b"]})])
            memory.index()
            yield memory

    def test_the_extension_has_data_to_check(self, extension):
        assert any(isinstance(item, Record) for item in extension.records())


class TestWorkspaces(ShippedContract):
    name = "workspaces"


class TestCoreMemory(ShippedContract):
    name = "core_memory"


class TestSaved(ShippedContract):
    name = "saved"


class TestConversations(ShippedContract):
    name = "conversations"


class TestDocuments(ShippedContract):
    name = "documents"


def test_every_shipped_extension_is_tested_by_the_contract(tmp_path):
    assert set(shipped_extensions(tmp_path)) == {contract.name for contract in ShippedContract.__subclasses__()}
