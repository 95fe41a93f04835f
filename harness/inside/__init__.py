"""What runs inside an engine's environment: stdlib, numpy and the engine's own package only.

Nothing here imports the rest of the kit: the folder is copied into the run directory and run from
there as ``python -m harness.inside.NAME JOB.json``. A job is one JSON file; results are written
atomically.
"""
