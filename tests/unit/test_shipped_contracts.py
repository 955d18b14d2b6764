"""The contracts that ship for others, run on what ships with the core."""

import re
from pathlib import Path

import pytest

from klaw_core import LanguageModelError, Prompt, PromptMessage
from klaw_journals.record_journal import FileJournal
from klaw_testing.extension import shipped_extensions
from klaw_testing.journal import RecordJournalContract
from klaw_testing.language_model import LanguageModelContract, ScriptedModel

ROOT = Path(__file__).parents[2]


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


def test_every_shipped_extension_is_tested_by_the_contract(tmp_path):
    texts = [path.read_text("utf-8") for path in ROOT.glob("plugins/*/tests/test_contract.py")]
    tested = {name for text in texts for name in re.findall(r'^    name = "(\w+)"$', text, re.MULTILINE)}
    assert tested == set(shipped_extensions(tmp_path))


def test_only_the_conformance_kit_ships_what_is_for_tests():
    sources = [path for path in ROOT.glob("plugins/*/src/**/*.py") if "klaw_testing" not in path.parts]
    tools = re.compile(
        r"^\s*(?:import|from) (?:pytest|pytest_httpserver|werkzeug|hypothesis|klaw_testing)\b", re.MULTILINE
    )
    assert len(sources) > 300
    assert [path for path in sources if tools.search(path.read_text("utf-8"))] == []
    assert tools.search("import pytest\n")
