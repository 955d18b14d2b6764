"""The Protocols a plugin implements. Hooks register; Protocols run.

Nothing here is inherited from: a class that has the methods is enough, and the conformance kit
(:mod:`klaw_testing`) says whether it has them right. ``R`` is the *resource* that a store and the
indexes inside it share, ``apsw.Connection`` for instance; the core only compares the type.
"""
