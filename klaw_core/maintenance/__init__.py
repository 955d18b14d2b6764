"""Looking after a memory: is everything as it should be (``doctor``), and taking it elsewhere (``export``)."""
