"""The search: find the chunks for a question, each with its location and the reason for its rank."""
