"""Rewrite docker/deepinfer/contract.json from an image that was really built.

``python -m tests.tools.image_contract [IMAGE]``: without an argument, the image of the lock. The
whole engine is imported in it under CUDA's stub of libcuda, so no GPU is needed.
"""

from __future__ import annotations

import json
import subprocess
import sys

from harness.files import write_text
from harness.runtime.images import CONTRACT, Images, images_folder

IMAGE = "deepinfer"
SCRIPT = (
    "mkdir /tmp/stub && ln -s /usr/local/cuda/lib64/stubs/libcuda.so /tmp/stub/libcuda.so.1 && "
    "LD_LIBRARY_PATH=/tmp/stub exec python /opt/source/contract.py"
)


def main() -> None:
    """Run the contract's script inside the image and keep what it prints."""
    images = Images(images_folder())
    image = sys.argv[1] if len(sys.argv) > 1 else images.run_reference(IMAGE)
    command = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "bash", image, "-c"]
    done = subprocess.run([*command, SCRIPT], stdout=subprocess.PIPE, check=True)
    path = images.folder(IMAGE) / CONTRACT
    write_text(path, json.dumps(json.loads(done.stdout), indent=2, sort_keys=True) + "\n")
    print(path)


if __name__ == "__main__":
    main()
