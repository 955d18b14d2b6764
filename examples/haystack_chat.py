"""Haystack: a pipeline that retrieves what earlier runs were told, asks the model, and keeps the message.

pip install -c constraints.txt '.[default]' plugins/klaw-haystack
"""

import os
import sys

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from klaw_haystack import KlawDocumentStore, KlawHybridRetriever

PROMPT = [
    ChatMessage.from_system("From earlier conversations:\n{% for one in documents %}{{ one.content }}\n{% endfor %}"),
    ChatMessage.from_user("{{ message }}"),
]


def main(message: str, server: str) -> None:
    settings = {"temperature": 0, "max_tokens": 40}
    model = OpenAIChatGenerator(
        api_base_url=f"{server}/v1", api_key=Secret.from_token("none"), model="local", generation_kwargs=settings
    )
    store = KlawDocumentStore()
    pipeline = Pipeline()
    pipeline.add_component("retriever", KlawHybridRetriever(store, top_k=3))
    pipeline.add_component("prompt", ChatPromptBuilder(PROMPT, required_variables=["documents", "message"]))
    pipeline.add_component("model", model)
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    answer = pipeline.run({"retriever": {"query": message}, "prompt": {"message": message}})
    print(answer["model"]["replies"][0].text)
    store.write_documents([Document(content=message)])
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080"))
