"""From what was said to facts: sentences, rules, slots, dates, verification, models."""
