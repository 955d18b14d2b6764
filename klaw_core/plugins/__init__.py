"""Find plugins, keep what they offer, and say what is wrong with the others."""
