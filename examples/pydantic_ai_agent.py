"""Pydantic AI: what the memory says about a message becomes instructions; the message is saved for later runs.

A larger model calls the tools of `KlawToolset` by itself: give them with `toolsets=[KlawToolset(memory)]`.

pip install -c constraints.txt '.[default,agents]' 'pydantic-ai-slim[openai]'
"""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from klaw_agents.pydantic_ai import KlawToolset
from klaw_core import Memory


async def main(message: str, server: str) -> None:
    provider = OpenAIProvider(base_url=f"{server}/v1", api_key="none")
    with Memory.open() as memory:
        agent = Agent(
            OpenAIChatModel("local", provider=provider),
            instructions=str(memory.context(message, budget=300)),
            toolsets=[KlawToolset(memory)] if "--tools" in sys.argv else [],
            model_settings={"temperature": 0, "max_tokens": 40},
        )
        result = await agent.run(message)
        print(result.output)
        memory.save(message, source="user")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080")))
