"""The commands of facts: ``klaw remember``, ``facts``, ``context``, ``compress`` and ``compact``."""
