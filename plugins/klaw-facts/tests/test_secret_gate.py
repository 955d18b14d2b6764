"""No secret becomes a fact, whichever door it comes through: not in the journal, an index, a prompt or a request."""

import inspect
import json
from datetime import UTC, datetime

import pytest
from attrs import evolve

from klaw_core import KlawError, RecordError
from klaw_facts import Fact, Facts, MemoryFactStore
from klaw_facts.importing import read_files
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.records import fact_record
from klaw_facts.secret_gate import SecretGate
from klaw_facts.store import JournalFactStore
from klaw_journals import Record
from klaw_redaction import Redactor
from klaw_testing.language_model import ScriptedModel

NOW = datetime(2026, 2, 24, tzinfo=UTC)
T = "Zq7Yw3Xv9Ut5Sr1Pn8Mk4Lj6Hg2Fd0Ca"
#: Sentences with a secret each, and the part of it that must not be found anywhere.
SECRETS = {
    "aws": ("My AWS key is AKIA{}", "QQ7W7E7R7T7Y7U7I"),
    "aws-secret": ("aws_secret_access_key = {}", T + "abcdefgh"),
    "github": ("My GitHub token is ghp_{}", T + "abcd"),
    "gitlab": ("The deploy token is glpat-{}", T),
    "openai": ("My OpenAI key is sk-proj-{}", T),
    "anthropic": ("I use the key sk-ant-api03-{}", T),
    "slack": ("The bot's token is xoxb-{}", T),
    "stripe": ("We charge with sk_live_{}", T),
    "google": ("Our maps key is AIza{}", T + "abc"),
    "hugging-face": ("I log in with hf_{}", T),
    "telegram": ("My bot is 1234567890:{}", T + "abc"),
    "jwt": (f"The session is eyJ{T}.{T}.{{}}", T),
    "bearer": ("Authorization: Bearer {}", T),
    "basic": ("Authorization: Basic {}", "YW5uYTpodW50ZXIy"),
    "private-key": ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", T),
    "url": ("Our database is postgres://anna:{}@host/db", "hunter-xyzzy"),
    "connection": ("Server=db;User Id=sa;Password={};Encrypt=true", "hunter-xyzzy"),
    "password": ("my password: {}", "swordfish-xyzzy"),
    "password-is": ("my password is {}", "hunter2xyzzy"),
    "russian": ("мой пароль: {}", "солнышкоxyzzy"),
    "chinese": ("我的密码：{}", "芝麻开门吧"),
    "env": ("DB_PASSWORD={}", "hunter2xyzzy"),
    "card": ("My card is {}", "4111 1111 1111 1111"),
    "seed": ("My seed phrase: {}", "apple river stone " * 3 + "apple river stone"),
}
SENTENCES = {name: (text.format(part), part) for name, (text, part) in SECRETS.items()}
OTHER = "I live in Lyon and like tea."


def everything(root):
    data = b"".join(path.read_bytes() for path in (root / "data").rglob("*") if path.is_file() and not is_record(path))
    return data.decode("utf-8", "replace").lower()


def is_record(path):
    """Conversations stay the record of what was said."""
    return "conversations" in path.parts


def no_leak(text, where):
    leaked = [name for name, (_, part) in SENTENCES.items() if part.lower() in text.lower()]
    assert leaked == [], where


#: Each door for text, by its method: a function that puts a sentence through it. A new method must be added here.
DOORS = {
    "Facts.remember": lambda facts, text, _: facts.remember(text),
    "Facts.import_facts": lambda facts, text, _: facts.import_facts([Fact(f"f-i{abs(hash(text))}", text)]),
    "Facts.add": lambda facts, text, number: facts.add(
        iter([Record("fact", {"value": fact_record(Fact(f"f-a{number}", text), NOW)})])
    ),
    "FactKeeper.remember": lambda facts, text, number: [
        facts.keeper.remember(text, by="agent"),
        facts.keeper.remember(
            f"Number {number} is here", tags=[text], metadata={"note": text}, source=text, subject=text
        ),
    ],
    "FactKeeper.edit": lambda facts, text, number: facts.keeper.edit(
        facts.remember(f"Something to edit {number}").id, text=text, tags=[text]
    ),
    "FactKeeper.end": lambda facts, text, number: facts.keeper.end(facts.remember(f"To end {number}").id, reason=text),
    "FactKeeper.retract": lambda facts, text, number: facts.keeper.retract(
        facts.remember(f"To retract {number}").id, reason=text
    ),
    "JournalFactStore.index": lambda facts, text, number: facts.store.index(
        [Fact(f"f-s{number}", text, tags=(text,)), Fact(f"f-t{number}", "fine", metadata={"note": text})]
    ),
    "FactsJournal.append": lambda facts, text, number: facts.journal.append(
        [
            fact_record(Fact(f"f-j{number}", text, source=text), NOW),
            {
                "id": f"d-{number}",
                "op": "digest",
                "ts": "2026-02-24T00:00:00Z",
                "chat": "telegram_1",
                "day": "2026-02-24",
            }
            | {"by": "m", "lines": [text, OTHER], "quotes": []},
            {
                "id": f"p-{number}",
                "op": "profile",
                "ts": "2026-02-24T00:00:00Z",
                "by": "m",
                "facts": ["f-x"],
                "lines": [text],
            },
        ]
    ),
}
#: Methods with a parameter for text that store none of it.
READING = {
    "Facts.get", "Facts.list", "Facts.search", "Facts.history", "Facts.extract", "Facts.compact", "Facts.forget",
    "Facts.arrange", "Facts.check_record", "Facts.declines", "Facts.fix", "Facts.offer", "Facts.on", "Facts.attach",
    "Facts.state", "Facts.compress", "Facts.drop_missing", "Facts.condense", "Facts.undo",
    "FactKeeper.get", "FactKeeper.reopen", "FactKeeper.pin", "FactKeeper.archive", "FactKeeper.decide",
    "FactKeeper.undo", "FactKeeper.forget",
    "JournalFactStore.search", "JournalFactStore.search_by_metadata", "JournalFactStore.delete",
    "FactsJournal.state", "FactsJournal.renamed", "FactsJournal.forget",
}  # fmt: skip


def test_every_method_that_takes_text_is_fed():
    doors = {
        f"{kind.__name__}.{name}"
        for kind in (Facts, FactKeeper, JournalFactStore, FactsJournal)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
    }
    assert doors - READING == set(DOORS), "feed a new door; forget one that is gone"


@pytest.mark.parametrize("door", DOORS)
def test_no_secret_passes_a_door(open_memory, tmp_path, klaw, door):
    memory = open_memory()
    facts = memory.extension(Facts)
    for number, (sentence, _) in enumerate(SENTENCES.values()):
        for text in (sentence, f"{OTHER}\n{sentence}"):
            try:
                DOORS[door](facts, text, f"{number}{len(text)}")
            except KlawError as error:
                no_leak(str(error), "an error")
    facts.compress()
    memory.index()
    no_leak(everything(tmp_path), "a file")
    no_leak(repr(facts.list(everything=True)), "a fact")
    for message in ("What is my key, my token, my password?", "Where do I live and what do I like?"):
        no_leak(str(memory.context(message, budget=5000)), "a prompt")
        no_leak(json.dumps(memory.call_tool("memory_facts", {"query": message}), ensure_ascii=False), "a tool")
    no_leak(klaw("export", "-").output, "an export")
    assert memory.doctor().findings == ()


def test_the_harness_finds_the_secrets_if_redaction_is_off(open_memory, tmp_path):
    facts = open_memory().extension(Facts)
    facts.journal.gate = SecretGate(Redactor(()))
    for sentence, _ in SENTENCES.values():
        facts.remember(sentence)
    found = (tmp_path / "data" / "facts.jsonl").read_text("utf-8")
    assert [name for name, (_, part) in SENTENCES.items() if part not in found.replace("\\n", "\n")] == []


@pytest.mark.parametrize("name", SENTENCES)
def test_a_secret_alone_is_refused_with_the_way_out(open_memory, klaw, name):
    facts = open_memory().extension(Facts)
    sentence, part = SENTENCES[name]
    with pytest.raises(RecordError, match="secret") as caught:
        facts.remember(sentence)
    assert "where it is kept" in caught.value.hint
    result = klaw("remember", "--", sentence)
    assert result.exit_code == 1
    assert part not in result.output
    answer = open_memory().call_tool("memory_remember", {"fact": sentence})
    assert "secret" in answer["error"]
    assert facts.list() == []


def test_other_sentences_stay_and_so_does_one_that_says_where_a_secret_is_kept(open_memory):
    facts = open_memory().extension(Facts)
    token = SENTENCES["github"][0]
    assert facts.remember(f"{OTHER} {token}. Tea is green.").text == "I live in Lyon and like tea. Tea is green."
    assert (
        facts.remember(f"{token} is stored in 1Password").text == "My GitHub token is [redacted] is stored in 1Password"
    )
    assert (
        facts.remember("Мой пароль: hunter2xyzzy, он лежит в сейфе").text == "Мой пароль: [redacted], он лежит в сейфе"
    )
    for kept in ("The GitHub token is in 1Password", "Пароль хранится в сейфе", "密码保存在保险箱里"):
        assert facts.remember(kept).text == kept


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("The API key is in the vault of the team", "credential"),
        ("The GitHub token is stored in 1Password", "credential"),
        ("Пароль хранится в сейфе", "credential"),
        ("密码保存在保险箱里", "credential"),
        ("Never keep the token in the repository", "rule"),
        ("The password policy has twelve rules", "conversation"),
        ("The boat is kept in the old harbour", "conversation"),
    ],
)
def test_what_says_where_a_secret_is_kept_is_about_a_credential(open_memory, text, category):
    assert open_memory().extension(Facts).remember(text).category == category


@pytest.mark.parametrize("extractor", ["rules", "model"])
def test_no_message_with_a_secret_reaches_a_fact_or_a_model(open_memory, tmp_path, say, extractor):
    model = ScriptedModel([json.dumps({"facts": []})] * 200)
    memory = open_memory(model, extractor=extractor, compressor=extractor)
    for day, (sentence, _) in enumerate(SENTENCES.values()):
        say(memory, f"{OTHER} We decided on {day} things on Monday. {sentence}", days=-day)
    memory.index()
    facts = memory.extension(Facts)
    facts.compress()
    facts.compact("telegram_1", 2)
    if extractor == "rules":
        assert any("Lyon" in fact.text for fact in facts.list()), "the rest is read"
    no_leak(everything(tmp_path), "a file")
    no_leak(
        repr(model.prompts) + "".join(item.content for prompt in model.prompts for item in prompt.messages), "a request"
    )
    for fact in facts.list(everything=True):
        assert "  " not in fact.text
        assert "█" not in fact.text


def test_no_secret_of_a_file_is_imported(open_memory, tmp_path, klaw):
    file = tmp_path / "MEMORY.md"
    file.write_text("".join(f"- {text}\n" for text, _ in SENTENCES.values() if "\n" not in text) + f"- {OTHER}\n")
    result = klaw("facts", "import", str(file))
    assert "1 fact added" in result.output
    no_leak(result.output, "the terminal")
    facts = open_memory().extension(Facts)
    assert [fact.text for fact in facts.list()] == [OTHER]
    assert facts.import_facts(list(read_files([file]))).added == 0
    no_leak(everything(tmp_path), "a file")


def test_a_journal_of_an_older_version_shows_no_secret_and_is_reported(open_memory, tmp_path):
    facts = open_memory().extension(Facts)
    kept = facts.remember(OTHER)
    lines = [fact_record(Fact(f"f-{number}", text), NOW) for number, (text, _) in enumerate(SENTENCES.values())]
    facts.journal.records.append(lines)
    memory = open_memory()
    facts = memory.extension(Facts)
    assert [fact.id for fact in facts.list()] == [kept.id]
    memory.index()
    no_leak(repr(facts.state()) + str(memory.context("my key, token, password", budget=5000)), "a prompt")
    no_leak(repr(list(facts.records())), "an export")
    (finding,) = [item for item in memory.doctor().findings if item.check == "fact-secrets"]
    assert len(finding.items) == len(SENTENCES)
    for name in finding.items:
        memory.forget(f"facts/{name}")
    assert memory.doctor().findings == ()
    no_leak(everything(tmp_path), "a file")


def test_facts_in_memory_have_no_secrets():
    store = MemoryFactStore()
    with pytest.raises(RecordError):
        store.index([Fact("f", SENTENCES["github"][0])])
    store.index([Fact("f", OTHER, metadata={"note": SENTENCES["github"][0]})])
    no_leak(repr(store.search("tea Lyon")), "a store")


def test_law_the_gate_changes_nothing_that_has_passed_it():
    gate = SecretGate()
    for text, _ in SENTENCES.values():
        for given in (text, f"{OTHER} {text} is kept in the safe. More"):
            assert gate.text(gate.text(given)) == gate.text(given)
            assert len(gate.blank(given)) == len(given)
            fact = Fact("f", OTHER, source=given, tags=(given,), subject=given)
            assert gate.fact(gate.fact(fact)) == gate.fact(fact) != evolve(fact, text="")
