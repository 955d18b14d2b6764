"""The project of a fact: from the message that said it, found by its name, and nearer to a message that names it."""

from datetime import UTC, datetime

import pytest

from klaw_facts import Facts, recency_buffer
from klaw_journals import Message

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


def said(memory, text, **meta):
    given = {"channel": "telegram", "chat_id": "1", **meta}
    memory.conversations.append(Message("user", text, MONDAY, meta=given))


def test_a_fact_has_the_project_of_its_message(open_memory):
    memory = open_memory(extractor="rules")
    said(memory, "We decided to use Postgres for billing.", project="Harbour Gate")
    said(memory, "We decided to use SQLite for the diary.")
    memory.index()
    found = {fact.text: fact.metadata.get("project") for fact in memory.extension(Facts).list()}
    assert found == {
        "We decided to use Postgres for billing.": "Harbour Gate",
        "We decided to use SQLite for the diary.": None,
    }


@pytest.mark.parametrize("project", [7, "", " ", "x" * 200, None, ["a"]])
def test_what_is_no_name_is_no_project(open_memory, project):
    memory = open_memory(extractor="rules")
    said(memory, "We decided to use Postgres for billing.", project=project)
    memory.index()
    (fact,) = memory.extension(Facts).list()
    assert not str(fact.metadata.get("project", "")).strip()


def test_a_message_that_names_a_project_gets_its_facts_first(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    for project, database in {"lighthouse": "Oracle", "harbour": "Postgres", "": "SQLite"}.items():
        facts.remember(
            f"We decided to use {database} for the database", metadata={"project": project} if project else {}
        )
    first = memory.context("Which database did we decide to use in the harbour?").items[0]
    assert "Postgres" in first.text
    first = memory.context("Which database did we decide to use in the lighthouse?").items[0]
    assert "Oracle" in first.text
    assert [fact.text for fact in facts.search("harbour")][:1] == ["We decided to use Postgres for the database"]


def test_recent_messages_are_public():
    older, kept = recency_buffer(list(range(5)), 2)
    assert (older, kept) == ([0, 1, 2], [3, 4])
