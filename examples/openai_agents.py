"""OpenAI Agents SDK: a session in the memory goes on in the next run.

pip install -c constraints.txt '.[default,agents]' openai-agents
"""

import asyncio
import os
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from klaw_agents.openai import KlawSession
from klaw_core import Memory


async def main(message: str, server: str) -> None:
    set_tracing_disabled(disabled=True)  # it would tell OpenAI what is run
    async with AsyncOpenAI(base_url=f"{server}/v1", api_key="none") as client:
        model = OpenAIChatCompletionsModel("local", client)
        agent = Agent("assistant", model=model, model_settings=ModelSettings(temperature=0, max_tokens=40))
        with Memory.open() as memory:
            result = await Runner.run(agent, message, session=KlawSession("family", memory))
            print(result.final_output)
            memory.index()  # and now every search of the memory finds it


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080")))
