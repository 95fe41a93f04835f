"""Run several waves of ``vllm bench serve`` in one process, one after the other.

For warm-ups only, where a client start for each shape would take longer than the waves. It is the
same client code; measured cells get a client process of their own.

Job: ``{"waves": [[argument, ...], ...]}``.
"""

from __future__ import annotations

from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser

from harness.inside.jobs import read_job


def run() -> None:
    """Run the job's waves in order."""
    for arguments in read_job()["waves"]:
        parser = FlexibleArgumentParser()
        add_cli_args(parser)
        main(parser.parse_args(arguments))


if __name__ == "__main__":
    run()
