"""Klaw's memory for agent frameworks: a module for each, which imports its framework when it is imported.

``klaw_agents.openai``, ``klaw_agents.google``, ``klaw_agents.strands``, ``klaw_agents.anthropic`` and
``klaw_agents.pydantic_ai``.
"""
