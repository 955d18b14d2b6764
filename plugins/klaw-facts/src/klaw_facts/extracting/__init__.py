"""Extraction of facts from messages: sentences, rules, slots, dates, verification, models."""
