"""A case: a name, a recipe that writes its files, and the arguments that mkcov is run with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.builder import GraphBuilder, Tensor

Recipe = Callable[[Path], object]

CASES: list[Case] = []


@dataclass(frozen=True, slots=True)
class Case:
    """One directory below fixtures/rules: `rule` is its name, `kind` is ok or bad."""

    rule: str
    kind: str
    name: str
    recipe: Recipe
    arguments: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it lies below fixtures/rules."""
        return Path(self.rule, self.kind, self.name)


def case(rule: str, kind: str, *arguments: str) -> Callable[[Recipe], Recipe]:
    """Registers a recipe; its function's name is the case's, so that `_` becomes `-`."""

    def register(recipe: Recipe) -> Recipe:
        name = recipe.__name__.strip("_").replace("_", "-")
        CASES.append(Case(rule, kind, name, recipe, arguments))
        return recipe

    return register


class Small(GraphBuilder):
    """A model of four operators: embedding, one linear layer, and the two of an argmax.

    A case adds what it is about between `x`, the embedded tokens, and `y`, which the head takes.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        super().__init__(rank, world_size)
        self._attached: dict[str, Tensor] = {}
        ids = self.model("input_token", (2, 1), "int64")
        table = self.model("embed_tokens", (32, 16))
        self.x = self.scratch("embed_out", (2, 16))
        self.y = self.scratch("hidden", (2, 16))
        self.operator("TASK_EMBEDDING", [ids, table], [self.x], waits_for=())

    def attached(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A model tensor that several layers may ask for: attached once."""
        if name not in self._attached:
            self._attached[name] = self.model(name, shape)
        return self._attached[name]

    def linear(self, weight: str | Tensor, source: Tensor, result: Tensor) -> None:
        """A linear layer from `source` to `result`."""
        matrix = weight if isinstance(weight, Tensor) else self.model(weight, (16, 16))
        self.operator("TASK_LINEAR_SM100", [source, matrix], [result], grid=2)

    def head(self, tiles: int = 2) -> Small:
        """The operators that end every graph, the argmax by so many tiles; returns the builder itself."""
        values = self.scratch("argmax_part_value", (2, tiles))
        indices = self.scratch("argmax_part_index", (2, tiles), "int64")
        token = self.model("output_token", (2, 1), "int64")
        self.operator("TASK_ARGMAX_PARTIAL_SM100", [self.y], [values, indices], grid=tiles)
        self.operator("TASK_ARGMAX_REDUCE_SM100", [values, indices], [token])
        return self

    @classmethod
    def whole(cls, rank: int = 0, world_size: int = 1) -> Small:
        """The model without anything odd."""
        graph = cls(rank, world_size)
        graph.linear("layer_0_proj", graph.x, graph.y)
        return graph.head()
