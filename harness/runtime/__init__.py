"""Where an engine's processes live."""
