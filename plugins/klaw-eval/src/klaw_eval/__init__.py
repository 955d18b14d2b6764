"""The command ``klaw eval``: measure how often a search finds the right chunk, with the same code that users run.

``datasets`` reads test sets into one value, ``building`` indexes one as a user would, ``running`` asks the questions,
``metrics`` and ``bootstrap`` compute the figures, and ``comparing`` compares two configurations.
"""
