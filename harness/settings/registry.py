"""The engines that a recipe can name. `harness.engines.registry` has the rest of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from harness.registry import Registry
from harness.settings.base import EngineSettings
from harness.settings.deepinfer import DeepInferSettings
from harness.settings.vllm import VllmOfflineSettings, VllmServerSettings

SETTINGS: Registry[EngineSettings] = Registry(
    "engine", [VllmServerSettings(), VllmOfflineSettings(), DeepInferSettings()]
)

EngineName = Annotated[
    str,
    AfterValidator(SETTINGS.checked),
    WithJsonSchema({"type": "string", "enum": list(SETTINGS.names)}),
]
"""An engine's name in a recipe or a plan."""

DriveName = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "enum": sorted({drive for name in SETTINGS.names for drive in SETTINGS[name].drives}),
        }
    ),
]
"""A drive mode of an engine; the engine's own rules say which ones it has."""
