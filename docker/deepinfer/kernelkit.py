"""Which kernels of a built library spill registers, as NVIDIA's cuobjdump tells.

deepinfer-flashmla's setup.py imports `tests.kernelkit` after its build and fails where one of its own
kernels spills; its sdist does not hold that module. This one takes its place, and as a program
(``kernelkit.py LIBRARY``) checks the installed library once more: a spill costs speed silently.
"""

import os
import re
import shutil
import subprocess
import sys

EXEMPT = "_ZN7cutlass"
"""Kernels that FlashMLA takes from CUTLASS keep stack frames; its own setup.py exempts them."""


def check_kernel_reg_spill_in_artifact(so_path, quiet=True, suppress_checking_env_var=None):
    """Return the mangled names of the kernels in ``so_path`` with stack or local memory.

    The name and the arguments are those that setup.py calls. It names a second path that exists only
    for editable installs: for a path without a file the answer is empty.

    Raises:
        RuntimeError: there is no cuobjdump, or it names no kernel, so nothing would be checked.
    """
    if not os.path.exists(so_path):
        return []
    spilled = [name for name, bytes_spilled in kernels(so_path) if bytes_spilled]
    print(f"register spills: {len(spilled)} kernel images with stack or local memory in {so_path}")
    return spilled


def kernels(so_path):
    """Return ``(mangled name, bytes of stack and local memory)`` of every kernel image."""
    tool = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "cuobjdump")
    tool = tool if os.access(tool, os.X_OK) else shutil.which("cuobjdump")
    if tool is None:
        raise RuntimeError("no cuobjdump in CUDA_HOME or PATH: register spills cannot be checked")
    command = [tool, "--dump-resource-usage", so_path]
    found = parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not found:
        raise RuntimeError(f"cuobjdump names no kernel in {so_path}")
    return found


def parse(text):
    """Read what ``cuobjdump --dump-resource-usage`` prints."""
    pattern = re.compile(r"^\s*Function (\S+?):\s*\n.*?STACK:(\d+).*?LOCAL:(\d+)", re.MULTILINE)
    return [(name, int(stack) + int(local)) for name, stack, local in pattern.findall(text)]


def main():
    """Check each library named; fail where a kernel that is not exempt spills."""
    for so_path in sys.argv[1:]:
        found = kernels(so_path)
        spilled = [name for name, bytes_spilled in found if bytes_spilled]
        own = [name for name in spilled if not name.startswith(EXEMPT)]
        print(f"{len(found)} kernel images, {len(spilled)} spill, {len(own)} of them not exempt")
        if own:
            sys.exit("\n".join(own))


if __name__ == "__main__":
    main()
