"""Deep Agents and LangMem work on a ``KlawStore``: their own code, with a model that says what the test says."""

import asyncio
import warnings
from importlib.util import find_spec

import pytest

if find_spec("deepagents") is None or find_spec("langmem") is None:
    pytest.skip("nox -s frameworks brings Deep Agents and LangMem", allow_module_level=True)

with warnings.catch_warnings():  # LangMem imports old names of LangGraph
    warnings.simplefilter("ignore")
    from deepagents import create_deep_agent
    from deepagents.backends import StoreBackend
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langmem import create_manage_memory_tool, create_search_memory_tool

from klaw_core import Memory, load_config
from langchain_klaw import KlawStore

FILES = ("files",)


class Scripted(GenericFakeChatModel):
    """A model that gives its answers one after another."""

    def bind_tools(self, _tools, **_options):
        return self


def calling(*calls):
    """Return a model that makes calls, one after another, and then ends."""
    steps = [[{"name": name, "args": arguments, "id": str(number)}] for number, (name, arguments) in enumerate(calls)]
    return Scripted(messages=iter([*(AIMessage("", tool_calls=step) for step in steps), AIMessage("Done.")]))


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the memory of the test again, as a later process does."""
    memories = []

    def opened():
        overrides = {"memory": {"embedding": {"type": "none"}}}
        memories.append(Memory.open(load_config(data_dir=tmp_path / "data", overrides=overrides)))
        return KlawStore(memories[-1])

    yield opened
    for memory in memories:
        memory.close()


def run(store, *calls):
    """Return what the tools of a deep agent on a store have answered."""
    agent = create_deep_agent(calling(*calls), backend=StoreBackend(namespace=lambda _runtime: FILES), store=store)
    messages = agent.invoke({"messages": [("user", "Go on.")]})["messages"]
    return [str(message.content) for message in messages if message.type == "tool"]


class TestDeepAgents:
    def test_a_file_of_one_agent_is_read_changed_and_found_by_another_in_a_later_process(self, opened):
        text = "# Bees\n\nAda keeps bees in Kiel.\n"
        run(opened(), ("write_file", {"file_path": "/notes/bees.md", "content": text}))
        edit = {"file_path": "/notes/bees.md", "old_string": "Kiel", "new_string": "Bremen"}
        answers = run(
            opened(),
            ("ls", {"path": "/notes"}),
            ("edit_file", edit),
            ("read_file", {"file_path": "/notes/bees.md"}),
            ("grep", {"pattern": "Bremen"}),
            ("glob", {"pattern": "**/*.md"}),
        )
        assert [number for number, answer in enumerate(answers) if "/notes/bees.md" in answer] == [0, 1, 3, 4]
        assert "Ada keeps bees in Bremen." in answers[2]

    def test_a_file_is_deleted(self, opened):
        backend = StoreBackend(store=opened(), namespace=lambda _runtime: FILES)
        backend.write("/bees.md", "Ada keeps bees.")
        backend.delete("/bees.md")
        assert backend.read("/bees.md").error
        assert not opened().search(FILES)

    def test_a_search_finds_the_words_of_a_file(self, opened):
        store = opened()
        StoreBackend(store=store, namespace=lambda _runtime: FILES).write("/bees.md", "Ada keeps bees.")
        StoreBackend(store=store, namespace=lambda _runtime: FILES).write("/kiln.md", "It fires at 900 degrees.")
        assert store.search(FILES, query="who keeps bees")[0].key == "/bees.md"


class TestLangMem:
    NAMESPACE = ("memories", "ada")

    def tools(self, store):
        manage = create_manage_memory_tool(self.NAMESPACE, store=store)
        return manage, create_search_memory_tool(self.NAMESPACE, store=store)

    def test_a_memory_of_one_process_is_found_changed_and_deleted_in_the_next(self, opened):
        manage, search = self.tools(opened())
        assert "created memory" in manage.invoke({"content": "Ada keeps bees in Kiel.", "action": "create"})
        manage.invoke({"content": "The kiln fires at 900 degrees.", "action": "create"})
        store = opened()
        manage, search = self.tools(store)
        assert search.invoke({"query": "who keeps bees"}).index("bees in Kiel") >= 0
        name = store.search(self.NAMESPACE, query="bees")[0].key
        manage.invoke({"content": "Ada keeps bees in Bremen.", "action": "update", "id": name})
        assert "bees in Bremen" in search.invoke({"query": "who keeps bees"})
        manage.invoke({"action": "delete", "id": name})
        assert "bees" not in search.invoke({"query": "who keeps bees"})

    def test_it_works_asynchronously(self, opened):
        async def remember():
            manage, search = self.tools(opened())
            await manage.ainvoke({"content": "Ada keeps bees.", "action": "create"})
            return await search.ainvoke({"query": "bees"})

        assert "Ada keeps bees." in asyncio.run(remember())
