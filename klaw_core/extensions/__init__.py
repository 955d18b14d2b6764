"""Extensions: the host that builds them and gives them the memory, and those that ship with the core."""
