"""The nox sessions name what is in the clone."""

from __future__ import annotations

import re
from pathlib import Path

from harness.runtime.images import Images, images_folder


def test_every_image_can_be_built_alone() -> None:
    text = (Path(__file__).parents[1] / "noxfile.py").read_text()
    named = re.search(r"^IMAGES = \((.*)\)$", text, re.MULTILINE)
    assert named
    images = Images(images_folder()).file.images
    default = {name for name, image in images.items() if not image.opt_in}
    assert set(re.findall(r'"([^"]+)"', named[1])) == default
