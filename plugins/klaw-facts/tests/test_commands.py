"""The commands of facts, run as a person runs them."""

import json
import shlex
import time
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import pytest

from klaw_core import LanguageModelError
from klaw_facts import Fact, Facts
from klaw_facts.compressing import CompressionReport
from klaw_facts.extracting.extraction import Extraction
from klaw_facts.timeline import draw_timeline
from klaw_testing.language_model import ScriptedModel


def of_json(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def homes(klaw):
    """Remember two homes, the second of which ends the first."""
    klaw("remember", "I live in Paris", "--from", "2025-03-01")
    klaw("remember", "I moved to Lyon", "--from", "2026-01-10")
    return klaw


@pytest.fixture
def said(open_memory, say, klaw):
    """Say three things in a chat and take facts from them."""
    memory = open_memory()
    say(memory, "Hello! My name is Ada Lovelace. I live in Paris since 2020. How are you?")
    say(memory, "I moved to Lyon with Eve.", days=1)
    say(memory, "Remember to run `make deploy` on /srv/app.", days=2)
    memory.close()
    assert klaw("facts", "extract").exit_code == 0
    return klaw


def test_remember_prints_the_id_and_what_it_ended(klaw):
    first = klaw("remember", "I", "live", "in", "Paris", "--from", "2025-03-01")
    second = klaw("remember", "I moved to Lyon")
    assert second.stdout.strip().startswith("f-")
    assert f"ended {first.stdout.strip()} (2025-03-01 to" in second.stderr
    assert "home = Lyon" in second.stderr


@pytest.fixture(params=["Asia/Tokyo", "UTC", "America/New_York"])
def in_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_zone")
def test_the_day_of_a_fact_is_the_day_that_was_written_wherever_the_clock_is(homes):
    def home(day):
        return [fact["value"] for fact in of_json(homes("facts", "list", "--as-of", day, "--json"))]

    (lyon,) = of_json(homes("facts", "list", "--json"))
    assert lyon["valid_from"].startswith("2026-01-10T00:00:00")
    assert [home(day) for day in ("2026-01-09", "2026-01-10", "2025-02-28", "2025-03-01")] == [
        ["Paris"],
        ["Lyon"],
        [],
        ["Paris"],
    ]
    homes("facts", "end", lyon["id"], "--to", "2026-02-01")
    assert [home(day) for day in ("2026-01-31", "2026-02-01")] == [["Lyon"], []]


def test_remember_says_which_slots_it_does_not_fill(klaw):
    told = klaw("remember", "my name is Ada and I live in Paris").stderr
    assert "name = Ada" in told
    assert "home is not set, because a fact has one slot; to store it as well: klaw remember 'I live in Paris'" in told
    assert "is not set" not in klaw("remember", "my name is Ada and I live in Paris", "--slot", "note=x").stderr
    assert "is not set" not in klaw("remember", "I live in Lyon").stderr


def test_remember_sets_the_slot_that_is_stated_first(klaw):
    told = klaw("remember", "I live in Paris and my name is Ada").stderr
    assert "home = Paris" in told
    assert "name is not set, because a fact has one slot; to store it as well: klaw remember 'my name is Ada'" in told
    assert "home is not set" not in told


@pytest.mark.parametrize("text", ["I moved to Lyon and then back to Paris.", "我叫外卖。", "I live in Lyon. I lied."])
def test_remember_takes_no_slot_that_is_not_stated(klaw, text):
    assert of_json(klaw("remember", text, "--json"))["slot"] is None


def test_remember_accepts_every_option(klaw):
    options = ["--slot", "editor=Vim", "--subject", "Ada", "--category", "preference", "--importance", "0.9"]
    options += ["--project", "cutter"]
    fact = of_json(klaw("remember", "-", *options, "--tag", "a", "--tag", "b", "--pin", "--json", stdin="uses Vim"))
    assert (fact["text"], fact["slot"], fact["value"], fact["subject"]) == ("uses Vim", "editor", "Vim", "Ada")
    assert (fact["category"], fact["importance"], fact["tags"], fact["is_pinned"]) == (
        "preference",
        0.9,
        ["a", "b"],
        True,
    )
    assert fact["metadata"] == {"project": "cutter"}
    assert "confirmed" in klaw("remember", "uses Vim", *options[:4]).stderr
    klaw("remember", "the mast is oak", "--project", "sloop")
    for words in (["facts", "list"], ["facts", "search", "Vim", "mast"]):
        assert [each["text"] for each in of_json(klaw(*words, "--project", "cutter", "--json"))] == ["uses Vim"]


@pytest.mark.parametrize("slot", ["launch_date", "büd get's"])
def test_remember_names_the_command_that_declares_a_slot_single(klaw, tmp_path, monkeypatch, slot):
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "config.toml"))
    assert "keeps" not in klaw("remember", "It launches on 3 May", "--slot", f"{slot}=3 May").stderr
    again = klaw("remember", "It launches on 9 May", "--slot", f"{slot}=9 May").stderr
    assert f"{slot} keeps its other values (3 May); for one value at a time: klaw config set" in again

    command = shlex.split(again.partition("for one value at a time: klaw ")[2].splitlines()[0])
    assert klaw(*command).exit_code == 0
    last = klaw("remember", "It launches on 10 May", "--slot", f"{slot}=10 May")
    assert "keeps" not in last.stderr
    (fact,) = of_json(klaw("facts", "list", "--json"))
    assert fact["value"] == "10 May"


def test_declaring_a_slot_keeps_the_other_declarations(klaw, tmp_path, monkeypatch):
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "config.toml"))
    assert klaw("config", "set", "extensions.facts.slots.pet", "many").exit_code == 0
    klaw("remember", "The first", "--slot", "my team=a")
    again = klaw("remember", "The second", "--slot", "my team=b").stderr
    assert klaw(*shlex.split(again.partition("at a time: klaw ")[2].splitlines()[0])).exit_code == 0
    assert of_json(klaw("config", "get", "extensions.facts.slots", "--json")) == {
        "extensions.facts.slots.pet": "many",
        'extensions.facts.slots."my team"': "single",
    }
    klaw("remember", "A cat", "--slot", "pet=cat")
    assert "keeps" not in klaw("remember", "A dog", "--slot", "pet=dog").stderr


def test_an_empty_message_is_reported(klaw):
    klaw("core", "set", "user", "name", "Ada")
    answered = klaw("context", " ")
    assert "Ada" in answered.stdout
    assert "the message is empty, so nothing was searched for" in answered.stderr
    assert "empty" not in klaw("context", "Ada").stderr


def test_a_context_with_facts_has_no_notice_about_an_empty_index(klaw):
    assert "nothing is indexed yet" in klaw("context", "where do I live?").stderr
    klaw("remember", "I live in Paris")
    answered = klaw("context", "where do I live?")
    assert "I live in Paris" in answered.stdout
    assert answered.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("remember", "x", "--slot", "home"), "expected NAME=VALUE, such as home=Lyon; got 'home'"),
        (("remember", "x", "--category", "dream"), "unknown category 'dream'"),
        (("remember", " "), "1 to 10,000 characters"),
        (("facts", "show", "f-none"), "there is no fact 'f-none' → klaw facts list --all"),
        (("facts", "extract", "--chat", "telegram_9"), "the chat 'telegram_9' has no messages"),
        (("facts", "review", "o-1"), "pass a PROPOSAL and --accept or --refuse"),
        (("facts", "undo", "b-1"), "there is no batch 'b-1'"),
        (("facts", "edit", "f-none"), "nothing to change"),
        (("compact", "--chat", "telegram_9"), "the chat 'telegram_9' has no messages"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint(klaw, arguments, problem):
    result = klaw(*arguments)
    assert result.exit_code in {1, 2}
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_list_shows_facts_that_are_true_now_at_a_moment_or_ever(homes):
    def values(*options):
        return [fact["value"] for fact in of_json(homes("facts", "list", *options, "--json"))]

    assert values() == ["Lyon"]
    assert values("--as-of", "2025-06-01") == ["Paris"]
    assert values("--known-at", "2025-06-01") == []
    assert values("--all") == ["Paris", "Lyon"]
    assert values("--all", "-n", "1") == ["Lyon"]
    assert values("--all", "--limit", "2", "--where", "value=Paris") == ["Paris"]
    assert values("--subject", "Ada") == values("--slot", "name") == values("--category", "rule") == []
    assert "home = Lyon" in homes("facts").stdout
    assert homes("facts", "list", "--format", "files").stdout.startswith("f-")


def test_search_finds_facts_that_were_true_at_a_moment(homes):
    def values(*options):
        return [fact["value"] for fact in of_json(homes("facts", "search", "where live moved", *options, "--json"))]

    assert values() == ["Lyon"]
    assert values("--as-of", "2025-06-01", "-n", "3") == ["Paris"]
    assert values("--known-at", "2025-06-01", "--limit", "3") == []
    assert (
        values("--slot", "name") == values("--where", "value=Rome") == values("--subject", "x", "--category", "y") == []
    )
    assert "I moved to Lyon" in homes("facts", "search", "moved", "--format", "md").stdout


def test_show_prints_the_quoted_message(said):
    (fact,) = of_json(said("facts", "list", "--slot", "name", "--json"))
    shown = said("facts", "show", fact["id"][:8]).stdout
    assert "conversations/telegram_1/2026-02-23.jsonl:1  user, 2026-02-23 10:00" in shown
    assert "Hello! **My name is Ada Lovelace.** I live in Paris" in shown
    assert "rules (word for word), batch b-" in shown
    (place,) = of_json(said("facts", "show", fact["id"], "--json"))["places"]
    assert place["message"]["content"][place["start"] : place["end"]] == place["text"] == fact["text"]


def test_history_shows_and_plots_every_value(said, tmp_path):
    shown = said("facts", "history", "home", "--subject", "user", "--plot", str(tmp_path / "home.svg"))
    assert [line.split("home = ")[1] for line in shown.stdout.splitlines()] == ["Paris; ended", "Lyon"]
    drawing = ET.parse(tmp_path / "home.svg").getroot()
    bars = [bar for bar in drawing.iter("{http://www.w3.org/2000/svg}rect") if bar.get("class")]
    assert [bar.get("class") for bar in bars] == ["was", "now"]
    assert said("facts", "history", "home", "--format", "csv").stdout.count("\n") == 3
    assert "use home.svg" in said("facts", "history", "home", "--plot", "home.png").stderr


def test_a_timeline_escapes_texts_and_draws_any_facts():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    facts = [
        Fact("f-1", "<b>&", valid_from=moment, valid_to=moment),
        Fact("f-2", "x" * 99, recorded_at=moment, retracted_at=moment),
        Fact("f-3", "no time at all"),
    ]
    drawn = ET.fromstring(draw_timeline(facts, moment))
    titles = [title.text.split(" (")[0] for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["user: <b>&", "user: " + "x" * 99, "user: no time at all"]
    bars = [bar.get("class") for bar in drawn.iter("{http://www.w3.org/2000/svg}rect") if bar.get("class")]
    assert bars == ["was", "no", "now"]
    assert list(ET.fromstring(draw_timeline([])).iter("{http://www.w3.org/2000/svg}title")) == []


def test_a_fact_can_be_edited_ended_reopened_retracted_and_pinned(homes):
    (fact,) = of_json(homes("facts", "list", "--json"))
    name = fact["id"]

    def state(*arguments):
        assert homes(*arguments).exit_code == 0
        return of_json(homes("facts", "show", name, "--json"))

    details = ["--slot", "home=Nice", "--subject", "Ada", "--category", "identity", "--importance", "0.2", "--tag", "t"]
    edited = state("facts", "edit", name, "Moved", "to", "Nice", *details, "--from", "2026-01-02", "--to", "2026-01-20")
    assert (edited["text"], edited["value"], edited["valid_to"]) == ("Moved to Nice", "Nice", "2026-01-20T00:00:00Z")
    assert state("facts", "reopen", name)["current"]
    assert state("facts", "end", name, "--to", "2026-01-15", "--reason", "left")["end_reason"] == "left"
    assert state("facts", "reopen", name)["current"]
    assert not state("facts", "retract", name, "--reason", "a joke")["current"]
    assert state("facts", "reopen", name)["current"]
    assert state("facts", "pin", name)["is_pinned"]
    assert not state("facts", "pin", name, "--off")["is_pinned"]


def test_a_fact_that_would_end_before_it_begins_or_says_nothing_is_refused(klaw):
    klaw("remember", "I live in Paris", "--from", "2025-03-02")
    (fact,) = of_json(klaw("facts", "list", "--json"))
    name = fact["id"]
    for wrong in (
        ("facts", "end", name, "--to", "2025-03-01"),
        ("facts", "edit", name, "--to", "2025-03-01"),
        ("facts", "edit", name, "--from", "2025-03-03", "--to", "2025-03-02"),
    ):
        refused = klaw(*wrong)
        assert refused.exit_code == 1
        assert "before the begin of the fact" in refused.stderr
    assert of_json(klaw("facts", "list", "--json")) == [fact]
    assert klaw("facts", "end", name, "--to", "2025-03-02").exit_code == 0
    empty = klaw("remember", " ")
    assert empty.exit_code != 0
    assert "empty" in empty.stderr


@pytest.mark.parametrize(("option", "left"), [("--accept", []), ("--refuse", ["Paris"])])
def test_an_end_of_a_fact_of_a_person_is_only_proposed(klaw, open_memory, say, option, left):
    klaw("remember", "I live in Paris", "--from", "2025-03-01")
    memory = open_memory()
    say(memory, "I moved to Lyon in 2026.")
    memory.close()
    klaw("facts", "extract")
    (proposal,) = of_json(klaw("facts", "review", "--json"))
    assert "replaced by" in klaw("facts", "review").stdout
    assert klaw("facts", "review", proposal["id"], option).exit_code == 0
    facts = of_json(klaw("facts", "list", "--json"))
    assert [fact["value"] for fact in facts if fact["made_by"] == "person"] == left
    assert "there are no proposals" in klaw("facts", "review").stderr


def test_extract_can_be_rehearsed_and_undone(klaw, open_memory, say):
    memory = open_memory()
    say(memory, "I moved to Lyon in 2026.")
    say(memory, "My name is Ada Lovelace.")
    memory.close()
    dry = klaw("facts", "extract", "--chat", "telegram_1", "--dry-run")
    assert "2 facts would be extracted from 2 messages" in dry.stdout
    assert "I moved to Lyon in 2026." in dry.stdout
    assert of_json(klaw("facts", "extract", "-n", "1", "--json"))["facts"] == 1
    assert of_json(klaw("facts", "extract", "--limit", "1", "--json"))["facts"] == 1
    (fact,) = of_json(klaw("facts", "list", "--slot", "home", "--json"))
    assert of_json(klaw("facts", "undo", fact["batch"], "--json")) == {
        "facts": 1,
        "digests": 0,
        "summaries": 0,
        "profile": False,
    }
    assert [fact["value"] for fact in of_json(klaw("facts", "list", "--json"))] == ["Ada Lovelace"]
    assert "0 facts extracted from 0 messages" in klaw("facts", "retry").stdout


def test_stats_count_by_state_category_and_maker(said):
    counts = of_json(said("facts", "stats", "--json"))
    assert (counts["facts"], counts["current"], counts["ended"], counts["batches"]) == (3, 2, 1, 1)
    assert counts["made_by"] == {"rules": 2}
    assert "made by" in said("facts", "stats").stdout


def test_a_context_is_printed_explained_and_bounded(said):
    printed = said("context", "where do I live now?", "--chat", "telegram_1", "--budget", "500")
    assert "I moved to Lyon with Eve. (was Paris until" in printed.stdout
    (fact,) = of_json(said("facts", "list", "--slot", "home", "--json"))
    assert f"facts/{fact['id']}" in said("context", "where do I live now?", "--explain").stdout
    again = of_json(said("context", "where do I live now?", "--seen", f"facts/{fact['id']}", "--json"))
    assert fact["id"] not in again["volatile"]
    then = said("context", "where do I live?", "--as-of", "2026-02-23", "--known-at", "today").stdout
    assert "Paris" in then
    assert "Lyon" not in then
    assert "the message is an acknowledgement" in said("context", "thanks!").stderr


def test_compress_creates_digests_and_a_profile(said):
    assert "2 new digests" in said("compress", "--dry-run").stdout
    assert said("compress", "--daily").stdout == "2 new digests\n"
    assert said("compress", "--weekly").stdout == "0 facts archived; profile of 2 lines, changed\n"
    assert said("compress").stdout == "0 new digests; 0 facts archived; profile of 2 lines, unchanged\n"
    assert of_json(said("compress", "--json"))["days"] == 0
    assert "    digest  telegram_1 2026-02-23\n" in said("compress", "--list").stdout
    assert "name: Ada Lovelace" in of_json(said("context", "thanks!", "--json"))["stable"]


def test_compress_reports_rejected_lines_of_a_model(said, monkeypatch):
    report = CompressionReport(days=3, calls=8, tokens_in=2000, tokens_out=1000, refused=4)
    monkeypatch.setattr(Facts, "compress", lambda *_args, **_options: report)
    assert said("compress", "--daily").stdout == "3 new digests; 4 refused; 8 calls with 3,000 tokens\n"


@pytest.fixture
def with_model(open_memory, say, klaw, monkeypatch, tmp_path):
    """Return a function that runs a command with a model of scripted answers, over two messages."""
    memory = open_memory()
    say(memory, "I live in Paris.")
    say(memory, "I work for Acme.", days=1)
    memory.close()
    (tmp_path / "config.toml").write_text('[extensions.facts]\nextractor = "model"\ncompressor = "model"\n')
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "config.toml"))

    def run(*arguments, answers=()):
        monkeypatch.setattr(Extraction, "language_model", lambda _self: ScriptedModel(answers))
        return klaw(*arguments)

    return run


@pytest.mark.parametrize("command", [("facts", "extract"), ("facts", "retry"), ("facts", "extract", "--quiet")])
def test_a_failing_model_is_an_error_and_the_messages_wait(with_model, command):
    failed = with_model(*command, answers=[LanguageModelError("no answer from :1")] * 9)
    assert failed.exit_code == 1
    assert "2 messages not read: no answer from :1" in failed.stderr
    assert "→ `klaw facts extract`" in failed.stderr
    assert ("0 facts extracted from 0 messages; 2 waiting" in failed.stdout) == ("--quiet" not in command)
    reported = with_model(*command, "--json", answers=[LanguageModelError("no answer")] * 9)
    assert (reported.exit_code, json.loads(reported.stdout)["waiting"]) == (1, 2)
    assert "no answer" in json.loads(reported.stderr.splitlines()[-1])["error"]
    done = with_model(*command, answers=['{"facts": []}'] * 9)
    assert (done.exit_code, done.stderr) == (0, "")


def test_unreadable_messages_are_skipped_with_a_notice(with_model):
    result = with_model("facts", "extract", answers=["not JSON"] * 99)
    assert result.exit_code == 0
    assert "the model could not read 2 messages; `klaw facts retry`" in result.stderr


def test_compress_with_a_failing_model_is_an_error(with_model):
    failed = with_model("compress", answers=[LanguageModelError("no answer from :1")] * 9)
    assert failed.exit_code == 1
    assert "not everything was compressed: no answer from :1" in failed.stderr
    assert "0 new digests" in failed.stdout


def test_compact_prints_a_summary_and_verbatim_quotes(said):
    printed = said("compact", "--chat", "telegram_1", "--keep", "0").stdout
    assert "3 messages summarised, 0 kept" in printed
    assert "- Remember to run `make deploy` on /srv/app." in printed
    assert of_json(said("compact", "--chat", "telegram_1", "--json"))["to_summarize"] == []


def test_a_summary_is_in_the_index_at_once(said):
    said("index")
    said("compact", "--chat", "telegram_1", "--keep", "0")
    assert "never indexed" not in said("doctor").output
    assert "summary" in said("search", "messages deploy").output


MEMORY_MD = """---
title: x
---
# About me

- I live in Paris
* My name is Ada Lovelace
<!-- - not this -->

## Work

We use tabs,
never spaces.

```
- not this either
```
| no | table |
"""


def test_memory_md_and_day_journals_are_imported_once(klaw, tmp_path):
    (tmp_path / "MEMORY.md").write_text(MEMORY_MD)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-02-24.md").write_text("- [x] Deployed version 2 to the harbour server\n")
    both = [str(tmp_path / "MEMORY.md"), str(tmp_path / "memory")]
    assert klaw("facts", "import", *both, "--dry-run").stdout == "4 facts would be added\n"
    assert of_json(klaw("facts", "list", "--json")) == []
    assert klaw("facts", "import", *both).stdout == "4 facts added\n"
    assert klaw("facts", "import", *both).stdout == "0 facts added; 4 already stored\n"
    facts = {fact["text"]: fact for fact in of_json(klaw("facts", "list", "--json"))}
    assert set(facts) == {
        "I live in Paris",
        "My name is Ada Lovelace",
        "We use tabs, never spaces.",
        "Deployed version 2 to the harbour server",
    }
    assert facts["I live in Paris"]["source"] == "MEMORY.md:6"
    assert facts["We use tabs, never spaces."]["metadata"] == {"heading": "Work"}
    assert facts["Deployed version 2 to the harbour server"]["said_at"] == "2026-02-24T00:00:00Z"


def test_output_of_mem0_is_imported_with_its_dates(klaw, tmp_path):
    memories = [
        {"id": "1", "memory": "I live in Paris", "created_at": "2025-01-01T00:00:00-07:00", "user_id": "ada"},
        {"id": "2", "memory": "I moved to Lyon", "created_at": "2026-01-01T00:00:00Z", "metadata": {"k": "v", "n": {}}},
    ]
    memories[1]["user_id"] = "ada"
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"results": memories}))
    assert of_json(klaw("facts", "import", str(path), "--json"))["added"] == 2
    assert of_json(klaw("facts", "import", str(path), "--from", "mem0", "--json"))["present"] == 2
    history = of_json(klaw("facts", "history", "home", "--json"))
    assert [(fact["value"], fact["valid_from"][:10], fact["subject"]) for fact in history] == [
        ("Paris", "2025-01-01", "user"),
        ("Lyon", "2026-01-01", "user"),
    ]
    assert history[1]["metadata"] == {"k": "v"}
    assert "Lyon" in klaw("context", "where do I live?").stdout


def test_forgotten_facts_are_not_imported_again(klaw, open_memory, tmp_path):
    (tmp_path / "MEMORY.md").write_text("- I live in Xanadu\n")
    klaw("facts", "import", str(tmp_path / "MEMORY.md"))
    (fact,) = of_json(klaw("facts", "list", "--json"))
    assert klaw("forget", f"facts/{fact['id']}", "--yes").exit_code == 0
    again = klaw("facts", "import", str(tmp_path / "MEMORY.md"))
    assert "not imported: forgotten before" in again.stderr
    assert open_memory().extension(Facts).list(everything=True) == []


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.json", "{}"), ("a.json", '[{"memory": 1}]'), ("a.txt", "x")]
)
def test_a_file_that_cannot_be_imported_is_named(klaw, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    result = klaw("facts", "import", str(tmp_path / name))
    assert result.exit_code == 1
    assert name in result.stderr


@pytest.mark.parametrize("form", ["text", "json", "csv", "md"])
def test_a_fact_that_was_known_earlier_is_listed_without_a_relevance(klaw, form):
    name = of_json(klaw("remember", "The green tea is in the tin", "--json"))["id"]
    known_at = datetime.now(UTC).isoformat()
    assert klaw("facts", "retract", name).exit_code == 0
    done = klaw("facts", "search", "green tea", "--known-at", known_at, "--format", form)
    assert done.exit_code == 0
    assert "green tea" in done.stdout
