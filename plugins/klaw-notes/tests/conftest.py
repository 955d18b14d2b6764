"""The homes of the integration tests."""

from homes import check, dump, home, make_home, memory

__all__ = ["check", "dump", "home", "make_home", "memory"]
