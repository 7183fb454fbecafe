"""The options of a model on a server."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import UsageError
from sealegs.files.jsonfile import check_depth
from sealegs.models.openai.endpoint import KEY_VARIABLE
from sealegs.options import RUNTIME, TopK, TopP


def _runtime(description: str, **limits: Any) -> Meta:
    return Meta(description=description, extra=RUNTIME, **limits)


class OpenAIOptions(Struct, frozen=True, kw_only=True):
    """Options of `openai:` and of every preset."""

    base_url: Annotated[
        str | None,
        _runtime(
            "address of the server, up to /v1, or of several, separated by commas; else OPENAI_BASE_URL, "
            "else OpenAI's own; of a preset, the preset's"
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        _runtime(
            f"environment variable that holds the key; else {KEY_VARIABLE}, of a preset the preset's, each "
            "of which is sent only where it belongs"
        ),
    ] = None
    concurrency: Annotated[
        int, _runtime("most requests at once to a server; fewer while it is overloaded", ge=1)
    ] = 64
    timeout: Annotated[float, _runtime("seconds that one try may take", gt=0)] = 600.0
    retries: Annotated[int, _runtime("further tries after a failure that may pass", ge=0)] = 8
    embed_batch: Annotated[int, _runtime("most texts embedded or ranked in one call", ge=1)] = 64
    top_p: TopP = None
    top_k: TopK = None
    reasoning_tokens: Annotated[
        int,
        Meta(
            description="tokens for thinking, beside those of the answer; a preset that can limit "
            "thinking is told so",
            ge=0,
        ),
    ] = 0
    effort: Annotated[
        Literal["low", "medium", "high"] | None,
        Meta(description="how hard to think, in the field that the provider has for it"),
    ] = None
    send_seed: Annotated[
        bool, Meta(description="send a seed, made from the run's seed and the repeat, with every request")
    ] = False
    extra_body: Annotated[
        str, Meta(description="a JSON object whose fields are added to every request's body")
    ] = ""

    def __repr__(self) -> str:
        return "OpenAIOptions(…)"  # a base_url may carry a password


def json_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(check_depth(text), type=dict[str, Any]) if text else {}
    except (msgspec.DecodeError, RecursionError):
        raise UsageError("extra_body is not a JSON object: write '{\"name\": value}'.") from None
