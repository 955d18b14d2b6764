"""Core memory: the few facts about user and agent that every call to a model is given."""
