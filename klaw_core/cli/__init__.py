"""The command ``klaw``: each command parses, calls ``Memory``, and prints.

``startup`` starts and ends the program. ``program`` lists the commands, and ``group`` imports their modules on demand.
``settings`` has the options that every command takes. ``output`` prints styled or plain text. ``kit`` is the API for
commands of other distributions. The other modules are one command each, or helpers that several commands share.
"""
