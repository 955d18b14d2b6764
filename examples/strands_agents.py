"""Strands: the conversation is kept without asking a model, and what it says is put before the model in later runs.

pip install -c constraints.txt '.[default,agents]' strands-agents
"""

import asyncio
import os
import sys

from strands import Agent
from strands.memory import MemoryManager
from strands.models.llamacpp import LlamaCppModel

from klaw_agents.strands import KlawMemoryStore
from klaw_core import Memory


async def main(message: str, server: str) -> None:
    model = LlamaCppModel(server, params={"temperature": 0, "max_tokens": 400})
    with Memory.open() as memory:
        store = KlawMemoryStore(memory, max_search_results=3, extraction=True)
        manager = MemoryManager(stores=[store], search_tool_config=False)
        agent = Agent(
            model=model, system_prompt="Answer in one sentence.", memory_manager=manager, callback_handler=None
        )
        print(await agent.invoke_async(message))
        await manager.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080")))
