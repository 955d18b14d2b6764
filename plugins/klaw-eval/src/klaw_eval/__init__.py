"""The command ``klaw eval``: how often the right chunk is found, with intervals, by the same code that users run.

``datasets`` reads test sets into one value, ``building`` makes an index of it as a user would, ``running`` asks the
questions, ``metrics`` and ``bootstrap`` are the arithmetic, ``comparing`` sets two configurations side by side.
"""
