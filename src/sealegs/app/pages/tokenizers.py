"""Tokenizers side by side on a benchmark's texts, without a model's weights."""

from __future__ import annotations

import importlib
import shlex
from typing import Any

from aiohttp import web
from multidict import MultiMapping

from sealegs.app.rendering import html, render_page
from sealegs.app.review import calls_of
from sealegs.app.settings import AppSettings
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.registry import TOKENIZERS
from sealegs.report.describe import describe
from sealegs.types import ModelRef


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    return render_page(settings, "tokenizers.html", "/tokenizers", **_form(settings))


def _form(settings: AppSettings, specs: str = "", problem: str = "") -> dict[str, Any]:
    folders = list(settings.model_folders())
    return {"title": "Tokenizers", "specs": specs, "folders": folders, "problem": problem}


def compare(settings: AppSettings, form: MultiMapping[Any]) -> str | web.Response:
    text = "\n".join(str(form.get("specs", "")).splitlines())  # a browser sends two characters for one
    try:
        return _compared(settings, text)
    except SealegsError as error:
        again = _form(settings, text, str(error))
        return html(render_page(settings, "tokenizers.html", "/tokenizers", **again), 422)


def _compared(settings: AppSettings, text: str) -> str:
    specs = [line.strip() for line in text.splitlines() if line.strip()]
    folders = settings.model_folders()
    specs = [f"hf:{folders[spec]}" if spec in folders else spec for spec in specs]
    if not specs:
        raise UsageError("give at least one tokenizer: embedded, or hf:PATH.")
    for spec in specs:
        if calls := calls_of({spec: ModelRef(spec)}, []):
            raise UsageError(
                f"{spec} is not a path on this machine, and this page does not call {calls[0].host}. Give "
                f"the path of a folder or a file, or at a terminal: sealegs tokenizers {shlex.quote(spec)}"
            )
    module = importlib.import_module(TOKENIZERS)
    comparison = module.compare(module.read("starter", None), specs)
    return render_page(
        settings, "tokenizers_compared.html", "/tokenizers",
        overview=describe(comparison), tokenized=comparison, **_form(settings, text),
    )  # fmt: skip
