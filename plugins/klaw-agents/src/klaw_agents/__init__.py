"""Klaw's memory for agent frameworks: a module for each, which imports its framework when it is imported.

``klaw_agents.openai``, ``google``, ``strands``, ``anthropic``, ``pydantic_ai``, ``llama_index``, ``agno``,
``agent_framework``; ``llm`` is a plugin of the program of this name.
"""
