"""The all-MiniLM-L6-v2 sentence embedding model as a package, for Klaw: data, no code.

``model.json`` beside this file is the manifest; the entry point group ``klaw.models`` leads to it.
"""
