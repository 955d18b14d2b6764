"""Agno: what the memory says about a message becomes context; the message is saved for later runs.

A larger model calls the tools of `KlawTools` by itself: give them with `tools=[KlawTools(memory)]`.

pip install -c constraints.txt '.[default,agents]' agno openai
"""

import os
import sys

from agno.agent import Agent
from agno.models.openai.like import OpenAILike

from klaw_agents.agno import KlawTools
from klaw_core import Memory


def main(message: str, server: str) -> None:
    with Memory.open() as memory:
        agent = Agent(
            model=OpenAILike(id="local", base_url=f"{server}/v1", api_key="none", temperature=0, max_tokens=40),
            additional_context=str(memory.context(message, budget=300)),
            tools=[KlawTools(memory)] if "--tools" in sys.argv else [],
            telemetry=False,
        )
        print(agent.run(message).content)
        memory.save(message, source="user")


if __name__ == "__main__":
    main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080"))
