"""An engine with a server, one without, and a metric, as somebody else would add them."""
