"""The Model Context Protocol: Klaw's tools, documents and context for agents.

``prologue`` answers the handshake and imports almost nothing. The modules that need the SDK (``server``, ``stdio``,
``http``) are imported after that.
"""
