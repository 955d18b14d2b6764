"""Extensions: the host that builds them and connects them to the memory, and those that ship with the core."""
