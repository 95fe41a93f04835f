"""Check command lines against the installed vLLM: its parsers, and its config classes key by key.

Runs inside the engine's environment. Reads ``{"serve": [argv...], "bench": [argv...]}`` on stdin
and prints one JSON list of what is wrong. Its own parser takes any JSON for --speculative-config,
so the keys and values of JSON options are compared with the fields and types of the classes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import sys
import typing
from collections.abc import Callable

from pydantic import TypeAdapter, ValidationError
from vllm.benchmarks.serve import add_cli_args
from vllm.config import CompilationConfig, SpeculativeConfig
from vllm.config.engram import EngramConfig
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

WHOLE = {"--compilation-config": CompilationConfig, "--engram-config": EngramConfig}
BY_KEY = {"--speculative-config": SpeculativeConfig}
"""Its instances need a target model, so its keys are compared one by one."""


def wrong_json(option: str, text: str) -> list[str]:
    if option in WHOLE:
        try:
            WHOLE[option](**json.loads(text))
        except (TypeError, ValidationError) as error:
            return [f"{option}: {error}"]
        return []
    if option not in BY_KEY:
        return [f"{option}: not compared"]
    hints = typing.get_type_hints(BY_KEY[option], include_extras=True)
    wrong = []
    for key, value in json.loads(text).items():
        if key not in hints:
            wrong.append(f"{option}: no such key {key}")
            continue
        try:
            TypeAdapter(hints[key]).validate_python(value)
        except ValidationError as error:
            wrong.append(f"{option}.{key}: {error.errors()[0]['msg']}")
    return wrong


def parse(
    parser: FlexibleArgumentParser, argv: list[str], check: Callable[[argparse.Namespace], object]
) -> list[str]:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            check(parser.parse_args(argv))
    except SystemExit:
        return [errors.getvalue().strip().splitlines()[-1]]
    except (TypeError, ValueError) as error:
        return [str(error)]
    return []


def main() -> None:
    lines = json.load(sys.stdin)
    wrong: list[str] = []
    parser = make_arg_parser(FlexibleArgumentParser())
    for argv in lines["serve"]:
        wrong += parse(parser, argv, validate_parsed_serve_args)
        for option, value in itertools.pairwise(argv):
            if value.startswith("{"):
                wrong += wrong_json(option, value)
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    for argv in lines["bench"]:
        wrong += parse(parser, argv, lambda args: None)
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
