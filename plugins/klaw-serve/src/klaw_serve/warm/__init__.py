"""The warm helper: the first ``klaw search`` leaves it behind, and the next ones are answered by it.

``extension`` starts it, ``helper`` is its process, ``forks`` runs a command in it, ``state`` has its files.
"""
