"""The homes of these tests (``tests/plugins/homes.py``)."""

from homes import check, home, make_home

__all__ = ["check", "home", "make_home"]
