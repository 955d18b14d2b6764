"""``klaw serve``: keep one memory open, with its model loaded, for all agents and people of a machine."""
