"""The Model Context Protocol: Klaw's tools, documents and context for agents.

``prologue`` answers the handshake and imports next to nothing; everything that needs the SDK (``server``, ``stdio``,
``http``) is imported behind it.
"""
