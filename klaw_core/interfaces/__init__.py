"""What a plugin implements. Hooks register; these interfaces run.

What a component can do beyond its Protocol is an ability, which it declares by inheriting the class of that name. The
conformance kit (:mod:`klaw_testing`) says whether it has them right. ``R`` is the *resource* that a store and the
indexes inside it share, ``apsw.Connection`` for instance; the core only compares the type.
"""
