"""Widgets that ask for options, files and models, made from the descriptions that the library gives."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin
from urllib.parse import urlencode

import msgspec
import streamlit as st
from msgspec import NODEFAULT, Struct

import evenkeel as ek
from evenkeel.app import show
from evenkeel.app.settings import Settings
from evenkeel.page.format import capitalised, visible

if TYPE_CHECKING:
    from evenkeel.models.presets import Preset
    from evenkeel.options import Option

FLAG = re.compile(r"--([a-z][a-z-]+)(?: [A-Z]{2,}\b)?")
UPLOAD = "Upload a file…"
MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")
EMBEDDED, FOLDER, SERVER = "Embedded (SmolLM2-135M)", "A folder", "An OpenAI-compatible server"
NO_KEY = "NO_KEY"
"""A variable that nobody sets: without one, the key of OpenAI would be sent."""
SERVER_EXAMPLE = "http://127.0.0.1:8000/v1"
ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?")
MARKS = {"ok": "✓", "not supported": "–", "unclear": "?", "failed": "✗"}
PACKED = (".parquet", ".gz", ".zst", ".bz2", ".xz", ".zip")
"""Endings of files that are not text."""
LONGEST_NAME = 50
"""Characters: a name has 255 bytes at most."""


def plain(words: str) -> str:
    """Words for a label or a help text of Streamlit, which reads Markdown: every sign stands for itself."""
    return MARKDOWN.sub(r"\\\1", words)


# Benchmarks


def benchmark_title(name: str) -> str:
    """`Consistency (MIRAE)` for `mirae`."""
    benchmark = ek.list_benchmarks().get(name)
    return visible(benchmark.layout.name if benchmark and benchmark.layout.name else name)


def benchmark(names: Sequence[str]) -> str:
    """One benchmark, by its title; the address has its name."""
    asked = st.query_params.get("benchmark")
    if asked in names:
        st.session_state.setdefault("benchmark", asked)
    chosen = st.selectbox("Benchmark", names, format_func=benchmark_title, key="benchmark")
    st.query_params["benchmark"] = chosen
    return chosen


# Options


class _Presentation(Struct, frozen=True):
    """How options are shown: `options.json`."""

    titles: dict[str, str]
    choices: dict[str, dict[str, str]]
    """Of an option that takes several of a few values, separated by commas: each with words for it. Its
    default is all of them."""


PRESENTATION = msgspec.json.decode(Path(__file__).with_name("options.json").read_bytes(), type=_Presentation)


def title(name: str) -> str:
    """The name of an option as a person reads it: `Longest answer (tokens)`."""
    return PRESENTATION.titles.get(name, capitalised(name.replace("_", " ")))


def with_titles(text: str) -> str:
    """A text of the command line with the options that it mentions under the names of the pages."""
    return FLAG.sub(lambda flag: f"“{title(flag[1].replace('-', '_'))}”", text)


def options(kind: type[Struct], settings: Settings, *, key: str, shown: int) -> dict[str, Any]:
    """A widget for each option; all but the first ones are behind one click.

    Gives what differs from the defaults, under the names of the options.
    """
    described = ek.describe(kind)
    chosen = _rows(described[:shown], settings, key)
    if folded := described[shown:]:
        with st.expander(f"More options ({len(folded)})"):
            chosen |= _rows(folded, settings, key)
    return chosen


def _rows(described: Sequence[Option], settings: Settings, key: str) -> dict[str, Any]:
    """Two options a row, one on a narrow screen."""
    chosen = {}
    for start in range(0, len(described), 2):
        row = described[start : start + 2]
        for column, option in zip(st.columns(len(row)), row, strict=True):
            if option.default is NODEFAULT:
                option = option._replace(default=None)
            with column:
                value = _option(option, settings, f"{key}-{option.name}")
                if option.name not in PRESENTATION.choices:
                    show.text(with_titles(option.description.replace("; repeat", "; one per line")), "small")
            if value != option.default:
                chosen[option.name] = value
    return chosen


def _option(option: Option, settings: Settings, key: str) -> Any:
    """The widget of one option, by its type."""
    label = plain(title(option.name))
    if option.name in PRESENTATION.choices:
        return _some_of(label, option, key)
    if option.file:
        path = file(label, settings, [option.default], settings.data_sets(), key=key)
        return option.default if path is None else path
    if option.type is bool:
        return st.checkbox(label, option.default, key=key, bind="query-params")
    if get_origin(option.type) is Literal:
        values = list(dict.fromkeys([option.default, *get_args(option.type)]))
        return st.selectbox(label, values, format_func=_value, key=key, bind="query-params")
    if option.type in (int, float):
        step, form = (1, "%d") if option.type is int else (0.1, "%g")
        return st.number_input(
            label,
            value=None if option.default is None else option.type(option.default),
            step=step,
            format=form,
            placeholder="default",
            key=key,
            bind="query-params",
        )
    if get_origin(option.type) is tuple:
        default = "\n".join(option.default)
        text = st.text_area(label, default, height=80, key=key, bind="query-params")
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    text = st.text_input(label, option.default or "", key=key, bind="query-params")
    return text.strip() or (None if option.default is None else "")


def _some_of(label: str, option: Option, key: str) -> str:
    """Some of the values that an option can have, separated by commas."""
    choices = PRESENTATION.choices[option.name]
    picked = st.pills(
        label,
        list(choices),
        selection_mode="multi",
        default=list(choices),
        format_func=choices.__getitem__,
        key=key,
        bind="query-params",
        wrap=True,
    )
    return option.default if len(picked) in (0, len(choices)) else ",".join(picked)


def _value(value: str | None) -> str:
    return "not given" if value is None else value


# Files


def file(
    label: str, settings: Settings, words: Sequence[str | None], files: Mapping[str, Path], *, key: str
) -> str | None:
    """A file: a word that is not one, the first of which is the default, one of those in the app's folders,
    or an upload. None where an upload was chosen and nothing is uploaded yet."""
    chosen = st.selectbox(
        label,
        [*words, *files, UPLOAD],
        format_func=_value,
        accept_new_options=True,
        key=key,
        bind="query-params",
    )
    if chosen == UPLOAD:
        uploaded = st.file_uploader(label, label_visibility="collapsed", key=f"{key}-upload")
        if uploaded is None:
            show.text("Choose a file to upload.", "warn")
            return None
        return str(save_upload(settings, uploaded.name, uploaded.getvalue()))
    if chosen is None or chosen in words or chosen not in files:
        return chosen
    return str(files[chosen])


def save_upload(settings: Settings, name: str, content: bytes) -> Path:
    """Save a file that was uploaded. Its name holds a digest, so that no other file is ever replaced."""
    if settings.read_only:
        raise ek.UsageError("this app is read-only: nothing can be uploaded.")
    if any(folder.is_symlink() for folder in (settings.built, settings.uploads)):
        raise ek.UsageError(f"{settings.uploads} is a link: nothing is written there. Remove it.")
    if b"\0" in content and not name.lower().endswith(PACKED):
        raise ek.UsageError(f"{name!r} is not a text file. Give JSON, CSV, text or Parquet.")
    digest = hashlib.sha256(content).hexdigest()[:8]
    stem, suffix = (re.sub(r"[^\w.-]", "_", part) for part in (Path(name).stem, Path(name).suffix))
    # First its own name, whose beginning may say the language.
    path = settings.uploads / f"{stem.lstrip('.')[:LONGEST_NAME]}-{digest}{suffix[:12].lower()}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


# Models


def model(settings: Settings) -> str | None:
    """Which model, as a spec; None where what was chosen is not complete yet."""
    folders = settings.model_folders()
    presets = {preset.title: preset for preset in ek.presets().values()}
    sources = [EMBEDDED, *([FOLDER] if folders else []), *presets, SERVER]
    source = st.selectbox("Model", sources, key="model-source", bind="query-params")
    if source == EMBEDDED:
        return "embedded"
    if source == FOLDER:
        name = st.selectbox("Folder or file", list(folders), key="model-folder", bind="query-params")
        return f"hf:{folders[name]}"
    return _tested(_server() if source == SERVER else _preset(presets[source]))


def _tested(spec: str | None) -> str | None:
    """A model on a server, which can be tried out first."""
    trials = st.session_state.setdefault("trials", {})
    if spec and st.button("Test the connection", key="model-test"):
        trials.pop(spec, None)
        with show.problems(), st.spinner("Sending a few small requests…"):
            trials[spec] = ek.try_model(spec)
    if (trial := trials.get(spec)) is not None:
        lines = [f"{MARKS[each.state]} {each.name}: {each.detail or each.state}" for each in trial.trials]
        show.text("\n".join(lines), "small" if trial.enough else "error")
    return spec


def _preset(preset: Preset) -> str | None:
    """A model of a provider or of a local server, by the name that is typed in."""
    chosen = st.text_input("Model name", key=f"model-{preset.name}", bind="query-params")
    if preset.key and preset.key_is_set:
        show.text(f"The API key is read from {preset.key}, which is set.", "soft")
    elif preset.key:
        show.text(f"{preset.key} is not set. Set it in the environment of the app and restart it.", "warn")
    else:
        show.text(f"The server is at {preset.address()}. No key is needed.", "soft")
    name = _model_name(chosen)
    return preset.spec(name) if name else None


def _model_name(text: str) -> str:
    """A name without arguments: these could send the key to another server."""
    if "?" in text:
        raise ek.UsageError(f"'{text}' is not the name of a model: remove the part from '?' on.")
    return text.strip()


def _server() -> str | None:
    """Any server that speaks the protocol: its address, the name of the model, where the key is."""
    address = st.text_input(
        "Address", placeholder=SERVER_EXAMPLE, key="model-address", bind="query-params"
    ).strip()
    name = _model_name(st.text_input("Model name", key="model-name", bind="query-params"))
    variables = [NO_KEY, *sorted({preset.key for preset in ek.presets().values() if preset.key})]
    variable = st.selectbox(
        "API key variable",
        variables,
        format_func=lambda name: "no key" if name == NO_KEY else name,
        key="model-variable",
        bind="query-params",
    )
    if re.search(r"[@?#]", address):
        raise ek.UsageError("the address must not contain a password or a key: set it in a variable.")
    if address and not ADDRESS.fullmatch(address):
        raise ek.UsageError(f"{address!r} is not an address. Example: {SERVER_EXAMPLE}")
    if not (address and name):
        return None
    if variable != NO_KEY:
        show.text(f"The API key in {variable} will be sent to {address}.", "warn")
    return f"openai:{name}?{urlencode({'base_url': address, 'api_key_env': variable})}"
