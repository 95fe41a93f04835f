"""The package that ties the others together: it carries out a plan and leaves a run directory."""
