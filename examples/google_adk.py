"""Google ADK: every run is a session of its own; ADK puts what earlier sessions say before the model.

pip install -c constraints.txt '.[default,agents]' google-adk anthropic
"""

import asyncio
import os
import sys

from anthropic import AsyncAnthropic
from google.adk.agents import LlmAgent
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import preload_memory_tool
from google.genai import types

from klaw_agents.google import KlawMemoryService
from klaw_core import Memory


async def main(message: str, server: str) -> None:
    client = AsyncAnthropic(base_url=server, api_key="none")  # llama.cpp's server speaks this protocol, too
    model = AnthropicLlm(model="local", client=client, max_tokens=40)
    agent = LlmAgent(name="assistant", model=model, tools=[preload_memory_tool])
    sessions = InMemorySessionService()
    with Memory.open() as memory:
        service = KlawMemoryService(memory, max_results=3)
        runner = Runner(agent=agent, app_name="example", session_service=sessions, memory_service=service)
        session = await sessions.create_session(app_name="example", user_id="me")
        async for event in runner.run_async(
            user_id="me", session_id=session.id, new_message=types.UserContent(message)
        ):
            if event.is_final_response() and event.content:
                print("".join(part.text or "" for part in event.content.parts or ()))
        ended = await sessions.get_session(app_name="example", user_id="me", session_id=session.id)
        assert ended is not None
        await service.add_session_to_memory(ended)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ.get("LLM_SERVER", "http://127.0.0.1:8080")))
