"""A double of DeepInfer 0.1.0 for tests, without a model or a GPU.

It has the real package's signatures (tests/inside/test_image_contract.py checks them) and the
behaviour that the driver must cope with: ranks that step together, prefill and decode that never
mix, prefill decided by votes every 70 and 100 decode steps, outputs that are pointers and come one
step late, requests of `LLM.generate` that can be scheduled only after their first step. Its numbers
are made up, and what it really did is written down: see `deepinfer.truth`.
"""

__version__ = "0.1.0"
