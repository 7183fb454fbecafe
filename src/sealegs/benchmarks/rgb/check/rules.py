"""The rules of `rules.json`: what declines, reports an error or answers beside it."""

from __future__ import annotations

from sealegs.text.answer_check.patterns import Rules

find = Rules(__package__).find
