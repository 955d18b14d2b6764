"""Plugins that ship with the core: ordinary ones, found through an entry point like any other."""
