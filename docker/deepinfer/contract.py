"""What the built engine offers, as JSON: versions, signatures, fields, defaults.

Run inside the image under CUDA's stub of libcuda. The kit's driver is held to what it prints, which
is kept beside this file; the import alone shows that all four packages found what they link to.
"""

import dataclasses
import importlib.metadata
import inspect
import json
import sys

import deepinfer.entrypoints.llm as entrypoint
import torch
from deep_ep.buffers.engram import EngramBuffer
from deepinfer._C import engine as bindings
from deepinfer.engine.arg_utils import EngineArgs
from deepinfer.engine.llm_engine import LLMEngine
from deepinfer.environ import envs
from deepinfer.sampling_params import SamplingParams

DISTRIBUTIONS = (
    *("deepinfer", "deepinfer-ep", "deepinfer-gemm", "deepinfer-flashmla"),
    *("torch", "nvidia-nccl-cu13", "tokenspeed-deepselect", "tilelang", "transformers"),
)


def methods(cls):
    """Return the signature of every public method, and of the constructor.

    A compiled method has none: the first line of its docstring states it.
    """
    found = {}
    for name, member in sorted(vars(cls).items()):
        call = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if (name.startswith("_") and name != "__init__") or not callable(call):
            continue
        try:
            found[name] = str(inspect.signature(call))
        except (TypeError, ValueError):
            lines = (call.__doc__ or "").strip().splitlines()
            found[name] = lines[0] if lines else ""
    return found


def fields(cls):
    """Return the names of a compiled class's properties."""
    return sorted(name for name, member in vars(cls).items() if isinstance(member, property))


def default(field):
    """Return a dataclass field's default as text."""
    missing = field.default is dataclasses.MISSING
    return "required" if missing else repr(field.default)


def main():
    """Print the contract."""
    contract = {
        "python": ".".join(map(str, sys.version_info[:2])),
        "torch": torch.__version__,
        "versions": {name: importlib.metadata.version(name) for name in DISTRIBUTIONS},
        "LLM": methods(entrypoint.LLM),
        "LLMEngine": methods(LLMEngine),
        "EngineArgs": {each.name: default(each) for each in dataclasses.fields(EngineArgs)},
        "SamplingParams": methods(SamplingParams),
        "RequestOutput": {
            "methods": methods(bindings.RequestOutput),
            "fields": fields(bindings.RequestOutput),
        },
        "Scheduler": {
            "methods": methods(bindings.Scheduler),
            "fields": fields(bindings.Scheduler),
        },
        "EngramBuffer": methods(EngramBuffer),
        "environment": sorted(name for name in dir(envs) if name.startswith("DEEPINFER_")),
    }
    json.dump(contract, sys.stdout, indent=2, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
