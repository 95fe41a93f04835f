"""JSON Schema of the files in recipes/, generated from the models, for editors."""

from __future__ import annotations

import json

from pydantic import BaseModel

from harness.suite.model import SuiteFile
from harness.suite.published import PublishedFile
from harness.suite.recipe import RecipeFile


def json_schemas() -> dict[str, str]:
    """Return the schemas by file name; a test keeps recipes/schema/ equal to them."""
    models: dict[str, type[BaseModel]] = {
        "suite": SuiteFile,
        "recipe": RecipeFile,
        "published": PublishedFile,
    }
    return {
        f"{name}.schema.json": json.dumps(
            model.model_json_schema(), indent=1, sort_keys=True, ensure_ascii=False
        )
        + "\n"
        for name, model in models.items()
    }
