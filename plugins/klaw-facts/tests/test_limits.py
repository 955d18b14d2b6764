"""The limits of a language model, and the size of the profile."""

from datetime import UTC, datetime

import pytest

from klaw_core import Chat, ConfigError, LanguageModelError, Memory, Message, estimate_tokens, load_config
from klaw_facts import Facts
from klaw_testing.language_model import ScriptedModel

CHAT = Chat("telegram", "1")


class SpentModel(ScriptedModel):
    """A model with a daily limit: it answers two prompts, and refuses all others as a ledger does."""

    def complete(self, prompt, /):
        if len(self.prompts) == 2:
            raise LanguageModelError("the daily limit of 2 requests is reached")
        return super().complete(prompt)


@pytest.mark.parametrize("what", ["extract", "compress"])
def test_the_limit_of_the_language_model_ends_a_run_and_the_rest_waits(open_memory, say, what):
    model = SpentModel(['{"facts": [], "items": []}'] * 2)
    memory = open_memory(model, extractor="model", compressor="model", window_tokens=100)
    for day in range(6):
        say(memory, f"It was a quiet day number {day}. " * 12, days=day)
    report = getattr(memory.extension(Facts), what)()
    assert len(model.prompts) == 2
    assert report.problem == "the daily limit of 2 requests is reached"
    assert what == "compress" or 0 < report.waiting < 6


@pytest.mark.parametrize(
    ("name", "instead"),
    [("max_calls_per_day", "max_requests_per_day"), ("max_tokens_per_day", "max_tokens_per_day")],
)
def test_limits_of_earlier_versions_name_the_setting_that_replaced_them(tmp_path, name, instead):
    (tmp_path / "klaw.toml").write_text(f"[extensions.facts]\n{name} = 5\n")
    config = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": str(tmp_path / "klaw.toml")})
    with pytest.raises(ConfigError, match=rf"extensions\.facts\.{name}.*memory\.language_model\.{instead}"):
        Memory.open(config).extension(Facts)


@pytest.mark.parametrize("most", [0, 12, 400])
def test_the_profile_is_no_larger_than_allowed(open_memory, most):
    facts = open_memory(profile_tokens=most).extension(Facts)
    for number in range(3):
        facts.remember(f"I like tea number {number}", category="preference")
    facts.compress()
    lines = [line for _, line in facts.state().profile]
    assert sum(estimate_tokens(lines)) <= most
    assert len(lines) == {0: 0, 12: 2, 400: 3}[most]


@pytest.mark.parametrize(("foreign", "facts"), [(False, 0), (True, 1)])
def test_facts_are_taken_from_foreign_messages_only_if_that_is_configured(open_memory, foreign, facts):
    memory = open_memory(extractor="rules", foreign=foreign)
    message = Message("user", "I live in Lyon.", datetime(2026, 2, 24, tzinfo=UTC), meta=CHAT.meta, trust="foreign")
    memory.conversations.append(message)
    assert memory.extension(Facts).extract().facts == facts
    assert [fact.trust for fact in memory.extension(Facts).list()] == ["foreign"] * facts
    compressed = memory.extension(Facts).compress()
    assert compressed.days == facts
