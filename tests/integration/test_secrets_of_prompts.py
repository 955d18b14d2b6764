"""Secrets reach no prompt and no request to a model: not from a question, core memory, an extension, or its prompt."""

import pytest

from klaw_core import LiveComponent, Memory, NewDocument, Prompt, PromptMessage, load_config
from klaw_core.extensions.memory_host import RedactingModel
from klaw_redaction import REDACTED, Redactor
from klaw_testing.language_model import ScriptedModel
from klaw_tools import ContextExtension, ContextItem

SECRETS = ("ghp_" + "a1B2" * 10, "sk-ant-" + "c3D4" * 10, "hunter2xyzzy")
TEXT = f"The token {SECRETS[0]}, the key {SECRETS[1]}, my password: {SECRETS[2]}"


def has_secret(text):
    return any(secret in text for secret in SECRETS)


def test_an_embedder_gets_no_secret_of_a_question_and_words_are_searched_as_given(make_home):
    home = make_home("sqlite")
    home.write("a.md", f"the deploy token is {SECRETS[0]}")
    with home.open() as memory:
        memory.index(home.notes)
        memory.add([NewDocument("d", TEXT)])
        assert memory.search(f"where is {SECRETS[0]}", mode="fts")[0].path == "notes/a.md"
        memory.search(f"where is {TEXT}")
        memory.context(f"where is {TEXT}")
        memory.nearest(f"where is {TEXT}", ["one", "two"])
    asked = home.recorder.questions
    assert any(REDACTED in question for question in asked), "it was asked"
    assert not any(map(has_secret, asked))


def test_a_language_model_gets_no_secret_of_a_prompt_and_answers_as_before():
    model = ScriptedModel(["fine"])
    redacting = RedactingModel(model, Redactor())
    assert (
        redacting.complete(Prompt((PromptMessage("user", TEXT), PromptMessage("system", "Be brief.")))).text == "fine"
    )
    (prompt,) = model.prompts
    assert [message.role for message in prompt.messages] == ["user", "system"]
    assert not any(has_secret(message.content) for message in prompt.messages)
    assert (redacting.model, redacting.max_tokens, redacting.status()) == (model.model, model.max_tokens, {})
    assert redacting.count_tokens("a b") == model.count_tokens("a b")


class Offering(ContextExtension):
    """An extension that offers a text in each field of an item."""

    name = "offering"

    def offer(self, _question, /):
        return [ContextItem(TEXT, label=TEXT, note=TEXT), ContextItem(TEXT, "stable")]


@pytest.mark.parametrize("redacts", [True, False])
def test_a_prompt_has_no_secret_of_core_memory_or_of_an_extension_unless_that_is_configured(tmp_path, redacts):
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"memory": {"embedding": {"type": "none"}, "conversations": {"redact_secrets": redacts}}},
        environment={"KLAW_CONFIG": "/dev/null"},
    )
    with Memory.open(config, components=[LiveComponent("extension", "offering", Offering())]) as memory:
        memory.core.update("agent", "learned_rules", TEXT)
        assert memory.core.get().agent["learned_rules"] == TEXT, "the file is what a person wrote"
        context = memory.context("hello there", budget=5000)
        assert "learned_rules: The token" in context.stable
        assert has_secret(str(context)) is not redacts
        assert has_secret(memory.call_tool("memory_context", {"message": "hello there"})["context"]) is not redacts
