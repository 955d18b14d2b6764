"""Plugins: discovery, the registry of components, and problems of broken plugins."""
