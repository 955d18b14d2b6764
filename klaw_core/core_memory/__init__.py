"""Core memory: the few facts about the user and the agent that are part of every prompt."""
