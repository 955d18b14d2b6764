"""The memory service of Google ADK, with ADK's own runner, sessions and tools."""

import asyncio

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory
from google.genai import types

from klaw_agents.google import KlawMemoryService

BEES = "My sister Ada keeps bees in Kiel."
FERRY = "The ferry leaves at seven."


def run(coroutine):
    return asyncio.run(coroutine)


def content(*texts, role="user"):
    return types.Content(role=role, parts=[types.Part(text=text) for text in texts])


def event(name, *texts, author="user", timestamp=1_770_000_000.0, **more):
    return Event(id=name, author=author, content=content(*texts), timestamp=timestamp, **more)


def session(*events, name="s1", app="travel", user="ada"):
    return Session(id=name, app_name=app, user_id=user, events=list(events))


def search(service, query, app="travel", user="ada"):
    return run(service.search_memory(app_name=app, user_id=user, query=query)).memories


def said(entries):
    return [part.text for entry in entries for part in entry.content.parts]


def delete(service, name, app="travel", user="ada"):
    run(service.delete_memory(app_name=app, user_id=user, memory_id=name))


@pytest.fixture
def service(memory):
    return KlawMemoryService(memory)


def test_it_is_a_memory_service_of_the_sdk(service):
    assert isinstance(service, BaseMemoryService)


def test_nothing_is_found_before_anything_was_added(service):
    assert search(service, "bees") == []


def test_a_session_is_found_in_a_later_process_as_it_was(service, open_memory):
    run(service.add_session_to_memory(session(event("e1", BEES), event("e2", FERRY, author="guide"))))
    (entry,) = search(KlawMemoryService(open_memory()), "who keeps bees")
    assert entry.content == content(BEES)
    assert entry.author == "user"
    assert entry.timestamp == "2026-02-02T02:40:00+00:00"


def test_a_session_that_is_added_twice_is_found_once(service):
    first = session(event("e1", BEES))
    run(service.add_session_to_memory(first))
    run(service.add_session_to_memory(first))
    run(service.add_session_to_memory(session(event("e1", BEES), event("e2", "Ada sold the honey."))))
    assert said(search(service, "bees")) == [BEES]
    assert said(search(service, "honey")) == ["Ada sold the honey."]


def test_a_changed_event_replaces_its_earlier_copy(service):
    run(service.add_session_to_memory(session(event("e1", BEES))))
    run(service.add_session_to_memory(session(event("e1", "My sister Ada keeps goats in Kiel."))))
    assert said(search(service, "Kiel")) == ["My sister Ada keeps goats in Kiel."]
    assert not search(service, "bees")


def test_events_with_equal_texts_are_separate(service):
    run(service.add_session_to_memory(session(event("e1", BEES), event("e2", BEES))))
    assert said(search(service, "bees")) == [BEES, BEES]


def test_an_event_id_is_unique_only_in_its_session(service):
    run(service.add_session_to_memory(session(event("e1", BEES), name="s1")))
    run(service.add_session_to_memory(session(event("e1", "Ada has ten bees."), name="s2")))
    assert sorted(said(search(service, "bees"))) == sorted([BEES, "Ada has ten bees."])


def test_a_deleted_event_does_not_return(service, memory, bytes_on_disk):
    one = session(event("e1", BEES), event("e2", "The code of the safe is xylophone."))
    run(service.add_session_to_memory(one))
    (found,) = search(service, "xylophone")
    delete(service, found.id)
    assert not search(service, "xylophone")
    run(service.add_session_to_memory(one))
    run(service.add_events_to_memory(app_name="travel", user_id="ada", session_id="s1", events=one.events))
    memory.index()
    assert not search(service, "xylophone")
    assert said(search(service, "bees")) == [BEES]
    delete(service, found.id)
    memory.close()
    assert bytes_on_disk("xylophone") == []


@pytest.mark.parametrize("name", [None, "", "unknown", "sessions/s1/e9", "../../x", "a\0b", "x" * 600, "\ud800"])
def test_deleting_an_unknown_id_does_nothing(service, name):
    run(service.add_session_to_memory(session(event("e1", BEES))))
    delete(service, name)
    assert said(search(service, "bees")) == [BEES]


def test_other_users_cannot_delete_an_event(service):
    run(service.add_session_to_memory(session(event("e1", BEES))))
    (found,) = search(service, "bees")
    delete(service, found.id, user="bob")
    delete(service, found.id, app="cooking")
    delete(service, f"../ada/{found.id}", user="bob")
    assert said(search(service, "bees")) == [BEES]


NAMES = [("a", "b"), ("a", "b/c"), ("a/b", "c"), ("a", "bc"), ("a", "%"), ("a", "_"), ("A", "b"), ("a", ""), ("", "b")]
NAMES += [("é", "日本"), ("a", "b%2Fc"), ("a", ".."), ("..", ""), ("x" * 300, "y" * 300), ("x" * 300, "y" * 299)]


def test_each_app_and_user_finds_only_its_events(service):
    for number, (app, user) in enumerate(NAMES):
        run(service.add_session_to_memory(session(event("e1", f"bees number {number}"), app=app, user=user)))
    for number, (app, user) in enumerate(NAMES):
        assert said(search(service, "bees", app, user)) == [f"bees number {number}"]
    assert search(service, "bees", "a", "nobody") == []


def test_everybody_finds_the_events_but_the_service_finds_nothing_else(service, memory):
    run(service.add_session_to_memory(session(event("e1", BEES))))
    memory.save("Bees sleep in winter.")
    assert said(search(service, "bees")) == [BEES]
    assert {result.content for result in memory.search("bees")} == {BEES, "Bees sleep in winter."}
    assert [result.content for result in memory.search("bees", collection="memory")] == ["Bees sleep in winter."]
    shared = KlawMemoryService(memory, collection="memory")
    run(shared.add_session_to_memory(session(event("e1", BEES))))
    assert said(search(shared, "bees")) == [BEES]
    assert len(memory.search("bees", collection="memory")) == 2


def test_only_messages_are_stored(service):
    thought = types.Part(text="Perhaps the zebra.", thought=True)
    call = types.Part(function_call=types.FunctionCall(name="zebra", args={}))
    mixed = Event(id="e1", author="guide", content=types.Content(role="model", parts=[thought, call]))
    texts = types.Content(role="model", parts=[thought, types.Part(text="About honey."), call, types.Part(text="Yes.")])
    run(
        service.add_session_to_memory(
            session(
                mixed,
                Event(id="e2", author="guide", content=texts),
                Event(id="e3", author="guide"),
                Event(id="e4", author="guide", content=types.Content(role="model")),
                event("e5", "honey, half said", partial=True),
                event("e6", "  "),
            )
        )
    )
    assert search(service, "zebra") == []
    assert said(search(service, "honey")) == ["About honey.", "Yes."]


def test_events_without_a_session_and_with_metadata(service):
    run(
        service.add_events_to_memory(
            app_name="travel", user_id="ada", events=[event("e1", BEES)], custom_metadata={"topic": "family", "n": {1}}
        )
    )
    (entry,) = search(service, "bees")
    assert entry.custom_metadata.pop("relevance") > 0
    assert entry.custom_metadata == {"topic": "family", "n": "{1}", "is_weak": False}


def test_memories_are_stored_unchanged(service):
    given = MemoryEntry(
        content=content(BEES), author="ada", timestamp="2026-02-24T10:00:00+00:00", custom_metadata={"k": 1}
    )
    for _ in range(2):
        run(service.add_memory(app_name="travel", user_id="ada", memories=[given]))
    (entry,) = search(service, "bees")
    assert entry.custom_metadata.pop("relevance") > 0
    assert not entry.custom_metadata.pop("is_weak")
    assert entry.model_copy(update={"id": None}) == given
    delete(service, entry.id)
    assert search(service, "bees") == []
    odd = MemoryEntry(id="m/1", content=content("Odd bees."), timestamp="some day")
    run(service.add_memory(app_name="travel", user_id="ada", memories=[odd]))
    assert said(search(service, "bees")) == ["Odd bees."]


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_question_finds_nothing(service, query):
    run(service.add_session_to_memory(session(event("e1", BEES))))
    assert search(service, query) == []


def test_the_number_of_results_is_limited(memory):
    service = KlawMemoryService(memory, max_results=3)
    run(service.add_session_to_memory(session(*(event(f"e{n}", f"bees, hive {n}") for n in range(8)))))
    assert len(search(service, "bees")) == 3


def test_concurrent_tasks_lose_nothing(service):
    async def main():
        await asyncio.gather(
            *(
                service.add_session_to_memory(session(event(f"e{n}", f"bees, hive {n}"), name=f"s{n}"))
                for n in range(10)
            )
        )

    run(main())
    assert len(search(service, "bees")) == 10


class Scripted(BaseLlm):
    """Asks the memory, then says what it found."""

    async def generate_content_async(self, llm_request, stream=False):  # noqa: ARG002, FBT002  # theirs
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None and "remember" in (last.text or ""):
            part = types.Part(function_call=types.FunctionCall(name="load_memory", args={"query": "bees"}))
        elif last.function_response is not None:
            found = last.function_response.response["result"].memories
            part = types.Part(text=f"You said: {found[0].content.parts[0].text}")
        else:
            part = types.Part(text="Noted.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def test_an_agent_of_adk_remembers_across_sessions_and_processes(open_memory):
    async def talk(text, *, remember=False):
        sessions = InMemorySessionService()
        service = KlawMemoryService(open_memory())
        agent = LlmAgent(name="guide", model=Scripted(model="scripted"), tools=[load_memory])
        runner = Runner(agent=agent, app_name="travel", session_service=sessions, memory_service=service)
        talked = await sessions.create_session(app_name="travel", user_id="ada")
        texts = []
        async for item in runner.run_async(user_id="ada", session_id=talked.id, new_message=content(text)):
            texts += [part.text for part in item.content.parts if part.text]
        if remember:
            ended = await sessions.get_session(app_name="travel", user_id="ada", session_id=talked.id)
            await service.add_session_to_memory(ended)
        return texts

    assert run(talk(BEES, remember=True)) == ["Noted."]
    assert run(talk("What do you remember of bees?")) == [f"You said: {BEES}"]
