"""The one part that knows all others: it carries a plan out and leaves a run directory."""
