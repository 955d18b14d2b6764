"""The filter in Open WebUI's own pipeline of functions and database, each chat in a process of its own."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from klaw_agents import open_webui
from klaw_agents.open_webui import Filter
from klaw_core import Agents, StoreError, load_config

_CHAT = """
import asyncio, json, sys
from types import SimpleNamespace

from open_webui.internal.db import Base, engine
from open_webui.models.functions import FunctionForm, FunctionMeta, Functions
from open_webui.utils import filter as filters

async def run(pasted, user, question):
    if await Functions.get_function_by_id("klaw") is None:
        form = FunctionForm(id="klaw", name="Klaw", content=pasted, meta=FunctionMeta(description=""))
        await Functions.insert_new_function("admin", "filter", form)
        await Functions.update_function_by_id("klaw", {"is_active": True, "is_global": True})
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace()), state=SimpleNamespace())
    functions = await filters.get_filter_functions(request, {"id": "m"}, [])
    extra = {"__user__": {"id": user}}

    async def process(kind, body):
        context = filters.get_filter_context(request)
        return (await filters.process_filter_functions(request, context, functions, kind, body, dict(extra)))[0]

    asked = [{"id": "q", "role": "user", "content": question}]
    body = await process("inlet", {"model": "m", "messages": asked})
    answered = [*asked, {"id": "a", "role": "assistant", "content": "Noted."}]
    await process("outlet", {"model": "m", "chat_id": user + question[:9], "messages": answered})
    print("SENT", json.dumps(body["messages"]))

Base.metadata.create_all(engine)
asyncio.run(run(*sys.argv[1:]))
"""


def test_a_user_is_answered_in_a_later_process_and_another_one_is_not(tmp_path, usual_memory, example):
    own = {
        **usual_memory,
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/webui.db",
        "WEBUI_SECRET_KEY": "secret",
        "OFFLINE_MODE": "true",
    }

    def sent(user, question):
        command = [sys.executable, "-c", _CHAT, example("Open WebUI"), user, question]
        done = subprocess.run(command, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True, check=False)
        (line,) = [each for each in done.stdout.splitlines() if each.startswith("SENT ")] or [done.stderr]
        return json.loads(line.removeprefix("SENT "))

    asked = "Where does my sister keep bees?"
    assert [each["role"] for each in sent("ada", "My sister keeps bees in Kiel.")] == ["user"]
    system, question = sent("ada", asked)
    assert (system["role"], question["content"]) == ("system", asked)
    assert "My sister keeps bees in Kiel." in system["content"]
    assert [each["content"] for each in sent("bo", asked)] == [asked]


class TestFilter:
    """What the filter does with the bodies that Open WebUI gives it."""

    @pytest.fixture(autouse=True)
    def agents(self, tmp_path, monkeypatch):
        config = load_config(data_dir=tmp_path / "data", overrides={"memory": {"embedding": {"type": "none"}}})
        with Agents(config) as agents:
            monkeypatch.setattr(open_webui, "_opened", [agents])
            yield agents

    def ask(self, messages, user="ada", **valves):
        made, told = Filter(), []
        made.valves = Filter.Valves(**valves)

        async def emit(event):
            told.append(event["data"]["description"])

        body = {"chat_id": "one", "messages": messages}
        sent = asyncio.run(made.inlet(body, {"id": user}, emit))
        asyncio.run(made.outlet(body, {"id": user}, emit))
        return sent["messages"], told

    def kept(self, agents, user="ada"):
        memory = agents.memory(f"open-webui-{user}")
        return [found.content for found in memory.search("bees")] if memory.collections() else []

    def turn(self, text):
        return [{"id": "q", "role": "user", "content": text}, {"id": "a", "role": "assistant", "content": "Noted."}]

    def test_what_is_recalled_is_added_to_the_system_message(self):
        self.ask(self.turn("My sister keeps bees in Kiel."))
        system = {"role": "system", "content": "Be brief."}
        question = {"role": "user", "content": [{"type": "text", "text": "Who keeps bees?"}, {"type": "image_url"}]}
        sent, _ = self.ask([system, question], remember=False)
        assert sent[0]["content"].startswith("Be brief.\n\n## Relevant memory")
        assert "My sister keeps bees in Kiel." in sent[0]["content"]
        assert sent[1:] == [question]

    def test_an_answer_that_is_made_again_does_not_keep_the_question_twice(self, agents):
        for _ in range(3):
            self.ask(self.turn("My sister keeps bees."))
        (found,) = self.kept(agents)
        assert found.count("My sister keeps bees.") == 1

    def test_nothing_is_kept_if_the_administrator_says_so(self, agents):
        self.ask(self.turn("My sister keeps bees."), remember=False)
        assert self.kept(agents) == []

    @pytest.mark.parametrize("user", ["", None])
    def test_without_a_user_nothing_happens(self, user):
        messages = self.turn("My sister keeps bees.")
        assert self.ask(messages, user=user) == (messages, [])

    def test_an_error_does_not_stop_the_chat_and_is_told(self, monkeypatch):
        def fail(_agents, _name):
            raise StoreError("the disk is full")

        monkeypatch.setattr(Agents, "memory", fail)
        messages = self.turn("My sister keeps bees.")
        assert self.ask(messages) == (messages, ["Klaw: the disk is full"] * 2)

    def test_a_name_that_is_no_name_of_a_memory_is_refused(self):
        messages = self.turn("My sister keeps bees.")
        sent, told = self.ask(messages, user="../bo")
        assert sent == messages
        assert len(told) == 2
