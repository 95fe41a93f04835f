"""What a recipe may set for each engine, and what its settings mean."""
