"""What Klaw's indexes of words share: what a word is, the plan of a question, its coverage by a chunk, suggestions.

And days as people write them, for what reads notes and questions.
"""
