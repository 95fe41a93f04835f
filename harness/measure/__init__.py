"""How an engine is loaded and what is read from it meanwhile."""
