"""The methods that are set side by side: what each is called, and which models it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from evenkeel.messages import suggestion
from evenkeel.types import Capability

Kind: TypeAlias = Literal["bm25", "embed", "rerank", "rewrite", "judge"]

FORMS = (
    "bm25",
    "embed:SPEC",
    "embed:SPEC+instruct",
    "rerank:SPEC",
    "rewrite:LM+embed:SPEC",
    "judge:SPEC",
    "judge:SPEC+annotations",
    "judge:SPEC+logprobs",
)
NEEDS: dict[str, Capability] = {"embed": "embed", "rerank": "rank", "rewrite": "generate"}


class Method(Struct, frozen=True):
    """A method as a person names it, taken apart."""

    name: str
    kind: Kind
    spec: str = ""
    """The model that embeds, ranks or judges."""
    writer: str = ""
    """The model that writes the summaries, of `rewrite`."""
    options: frozenset[str] = frozenset()

    @property
    def roles(self) -> dict[str, tuple[str, Capability]]:
        """The models it needs: a role, its spec, and what it must be able to do.

        A role goes by what it does and by whom, so that methods share the work that they have in common.
        """
        match self.kind:
            case "bm25":
                return {}
            case "rewrite":
                return {
                    f"rewrite:{self.writer}": (self.writer, "generate"),
                    f"embed:{self.spec}": (self.spec, "embed"),
                }
            case "judge":
                return {
                    f"judge:{self.spec}": (
                        self.spec,
                        "loglikelihood" if "logprobs" in self.options else "generate",
                    )
                }
            case "embed" | "rerank":
                return {f"{self.kind}:{self.spec}": (self.spec, NEEDS[self.kind])}


def parse_method(text: str) -> Method:
    """A method's name taken apart, or an error that lists the forms."""
    text = text.strip()
    head, *options = text.split("+")
    kind, _, spec = head.partition(":")
    if kind == "bm25" and not spec and not options:
        return Method("bm25", "bm25")
    if (
        kind == "rewrite"
        and spec
        and len(options) == 1
        and options[0].startswith("embed:")
        and options[0][6:]
    ):
        return Method(text, "rewrite", spec=options[0].removeprefix("embed:"), writer=spec)
    known = {"embed": {"instruct"}, "rerank": set(), "judge": {"annotations", "logprobs"}}
    if kind in known and spec and set(options) <= known[kind] and len(set(options)) == len(options):
        return Method(text, kind, spec=spec, options=frozenset(options))  # type: ignore[arg-type]
    hint = "" if kind in known else suggestion(kind, ("bm25", "rewrite", *known))
    raise ValueError(f"--method: '{text}' is no method.{hint} A method is one of: {', '.join(FORMS)}")


def parse_methods(texts: Sequence[str]) -> list[Method]:
    methods = [parse_method(text) for text in texts]
    if not methods:
        raise ValueError(f"--method: name one at least, such as bm25. A method is one of: {', '.join(FORMS)}")
    if len({method.name for method in methods}) < len(methods):
        raise ValueError("--method: the same one twice")
    return methods
