"""LangChain: every run is a chat of its own, and is told what earlier chats have to do with the question.

pip install -c constraints.txt '.[default]' plugins/langchain-klaw langchain-openai
"""

import os
import sys
from uuid import uuid4

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from klaw_core import Memory
from langchain_klaw import KlawChatMessageHistory, KlawRetriever

PROMPT = ChatPromptTemplate(
    [("system", "From earlier conversations:\n{remembered}"), ("placeholder", "{history}"), ("human", "{message}")]
)


def main(message: str, server: str) -> None:
    model = ChatOpenAI(base_url=f"{server}/v1", api_key="none", model="local", temperature=0, max_completion_tokens=40)
    with Memory.open() as memory:
        found = KlawRetriever(memory=memory, k=3).invoke(message)
        history = KlawChatMessageHistory(uuid4().hex, memory)
        answer = (PROMPT | model).invoke(
            {
                "remembered": "\n".join(document.page_content for document in found) or "nothing",
                "history": history.messages,
                "message": message,
            }
        )
        print(answer.text)
        history.add_user_message(message)
        history.add_ai_message(answer.text)
        memory.index()


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080"))
