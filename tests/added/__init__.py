"""Engines with a server and without one, and a metric, as somebody else would add them."""
