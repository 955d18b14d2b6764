"""DSPy: a program that retrieves what the memory has about a question; the question is saved for later runs.

A larger model follows the forms of DSPy: `dspy.ChainOfThought("context, question -> answer")` in place of a prompt.

pip install -c constraints.txt '.[default,agents]' dspy
"""

import os
import sys

import dspy

from klaw_agents.dspy import KlawRetriever
from klaw_core import Memory


def main(message: str, server: str) -> None:
    model = dspy.LM("openai/local", api_base=f"{server}/v1", api_key="none", temperature=0, max_tokens=40, cache=False)
    with Memory.open() as memory:
        passages = KlawRetriever(memory, k=1)(message).passages
        known = "\n".join(passages) or "Nothing is known."
        print(model(f"{known}\n\n{message}")[0])
        memory.save(message, source="user")


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080"))
