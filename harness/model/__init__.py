"""The models that engines serve."""
