"""The command ``klaw``: each command parses, calls ``Memory``, and prints.

``startup`` begins and ends the program, ``program`` is the group of commands and ``group`` loads their modules when
they are needed; ``settings`` holds the options every command takes, ``output`` decides between terminal and plain text;
``kit`` is what commands of other distributions are written with; the other modules are one command each, or what
several of them print.
"""
