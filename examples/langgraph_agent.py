"""LangGraph: a graph compiled with `KlawStore`, whose node reads what earlier runs stored and stores the message.

pip install -c constraints.txt '.[default]' 'plugins/langchain-klaw[langgraph]' langgraph langchain-openai
"""

import os
import sys
from uuid import uuid4

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from klaw_core import Memory
from langchain_klaw import KlawStore

NAMESPACE = ("users", "me")


def main(message: str, server: str) -> None:
    model = ChatOpenAI(base_url=f"{server}/v1", api_key="none", model="local", temperature=0, max_completion_tokens=40)

    def answer(state: MessagesState, runtime: Runtime) -> MessagesState:
        assert runtime.store is not None
        said = state["messages"][-1].text
        found = runtime.store.search(NAMESPACE, query=said, limit=3)
        told = "\n".join(item.value["text"] for item in found) or "nothing"
        replied = model.invoke([SystemMessage(f"From earlier conversations:\n{told}"), *state["messages"]])
        runtime.store.put(NAMESPACE, uuid4().hex, {"text": said})
        return {"messages": [replied]}

    with Memory.open() as memory:
        graph = StateGraph(MessagesState)
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        compiled = graph.compile(store=KlawStore(memory))
        state = compiled.invoke({"messages": [("human", message)]})
        print(state["messages"][-1].text)


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080"))
