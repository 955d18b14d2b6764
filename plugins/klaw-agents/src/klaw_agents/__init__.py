"""Klaw's memory for agent frameworks: a module for each, which imports its framework when it is imported.

``klaw_agents.openai``, ``google``, ``strands``, ``anthropic``, ``pydantic_ai``, ``llama_index``, ``agno``,
``agent_framework``, ``dspy``, ``crewai``, ``claude_agent_sdk``; ``llm``, ``hermes`` and ``open_webui`` are plugins of
these programs.
"""
