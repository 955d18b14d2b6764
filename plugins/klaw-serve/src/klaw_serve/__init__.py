"""``klaw serve``: one memory, kept open and warm, for every agent and person of a machine."""
