"""Core memory: the few facts about user and agent that are part of every prompt."""
