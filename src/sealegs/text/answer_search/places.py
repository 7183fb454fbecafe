"""Other names of countries, cities and clubs, and places without the country that is written before them."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.text.answer_search.korean import place_names


class Places(Struct, frozen=True, forbid_unknown_fields=True):
    names: dict[str, tuple[str, ...]]
    """Other names, and the adjective of a country."""
    before: tuple[str, ...]
    """Countries that Chinese writes before a place: 肯尼亚内罗毕."""


def other_names(answer: str) -> list[str]:
    """What else an answer is called, where it is a country or a place with its country."""
    places = _places()
    names = places.names.get(answer.strip().lower().removeprefix("the "), ())
    without = [answer.removeprefix(country) for country in places.before if answer.startswith(country)]
    return [*names, *(place for place in without if len(place) >= 2), *place_names(answer)]


@cache
def _places() -> Places:
    return read_json(__package__, "places.json", type=Places)
