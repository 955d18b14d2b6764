"""What a word is: how texts are treated before they are indexed, and how a question becomes terms to look for.

The word index and the store's index of messages share it, so that both find the same by the same question.
"""
