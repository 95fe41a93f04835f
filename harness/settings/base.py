"""The rules that every engine's settings follow, and what each engine adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Protocol

from pydantic import JsonValue

Form = Literal["flags", "keywords"]

FORMS: Mapping[Form, str] = {"flags": "a flag with --", "keywords": "a keyword argument"}

MODELS_OWN = "the model's own generation config"
"""Sampling where nothing else is set: what ``vllm serve`` uses by default."""


class Given(Protocol):
    """What a recipe, or a planned session, sets."""

    @property
    def args(self) -> Mapping[str, JsonValue]:
        """Flags or keyword arguments, with their values."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Environment variables."""
        ...


class Recipe(Given, Protocol):
    """Everything in a recipe that an engine has rules for."""

    @property
    def drive(self) -> str | None:
        """The drive mode that is asked for."""
        ...

    @property
    def ranks(self) -> int:
        """Replicas that are asked for."""
        ...


class EngineSettings(ABC):
    """What a recipe and a plan need to know about one engine."""

    name: ClassVar[str]
    """As recipes write it."""
    product: ClassVar[str]
    """As reports and messages write it."""
    served: ClassVar[bool]
    """Whether it is loaded over HTTP by the benchmark client; else it is given the token ids."""
    form: ClassVar[Form]
    """How its settings are written."""
    has_client: ClassVar[bool] = False
    """Whether its image holds the benchmark client, which also makes the prompts."""
    reserved: ClassVar[tuple[str, ...]] = ()
    """Settings that only the kit makes; a recipe must not."""
    drives: ClassVar[tuple[str, ...]] = ()
    """Its drive modes, if it has several; a recipe then names one."""
    replicates: ClassVar[bool] = False
    """Whether a recipe can ask for several independent replicas, as `ranks`."""

    def broken(self, recipe: Recipe) -> Iterator[str]:
        """Yield each rule that ``recipe`` breaks, as a sentence that names the setting."""
        if self.drives and recipe.drive not in self.drives:
            yield f"`drive` must be one of {', '.join(self.drives)} for {self.name}"
        if recipe.drive and not self.drives:
            yield f"`drive` cannot be set for {self.name}: it has only one drive mode"
        if recipe.ranks > 1 and not self.replicates:
            yield f"`ranks` cannot be set for {self.name}: it runs as one engine"
        yield from self.broken_args(recipe.args)

    def broken_args(self, args: Mapping[str, JsonValue]) -> Iterator[str]:
        """Yield each rule that ``args`` break: those of a recipe, or of one of its sizings."""
        if reserved := sorted(set(args) & set(self.reserved)):
            yield f"the kit sets this itself: {', '.join(reserved)}"
        for name, value in args.items():
            if name.startswith("--") != (self.form == "flags"):
                yield f"{name}: a setting of {self.name} must be {FORMS[self.form]}"
            elif value is None or (self.form == "flags" and value is False):
                yield f"{name}: a flag must be true or left out"

    def process_count(self, args: Mapping[str, JsonValue], ranks: int) -> int:  # noqa: ARG002
        """Return how many processes the kit starts; ``ranks`` is the recipe's replica count."""
        return ranks

    @abstractmethod
    def speculation(self, given: Given) -> JsonValue:
        """Return ``method``, ``num_speculative_tokens`` and what else decides drafting, or None."""

    @abstractmethod
    def prefix_caching(self, given: Given) -> bool:
        """Return whether a prompt can be served from the cache of earlier ones."""

    def sampling(self, given: Given) -> str:  # noqa: ARG002 - what most engines do
        """Return where the sampling parameters come from, since no request sends any."""
        return MODELS_OWN
