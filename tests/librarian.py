"""Documents about who founded which town library, and a server whose model reads them as a good one would.

    with Librarian(ENGLISH) as server:
        api.build("rgb", out, docs=write_documents(ENGLISH, folder), model="openai:x", base_url=server.url)

It knows nothing but what it reads.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from scripted import Scripted
from sealegs.benchmarks.rgb.data import Dataset, read_instances
from sealegs.benchmarks.rgb.make.passages import reveals, states
from sealegs.benchmarks.rgb.make.questions import SetWriter


class Library(NamedTuple):
    town: str
    founder: str
    fake: str


class World(NamedTuple):
    """The truth, and how it is worded in a language."""

    lang: Literal["en", "zh"]
    libraries: list[Library]
    document: str
    question: str
    rewritten: tuple[str, ...]
    """In the order of the styles that are asked for: no two alike."""


ENGLISH = World(
    "en",
    [
        Library("Pellmouth", "Agnes Rudgard", "Dora Kemp"),
        Library("Gorscote", "Hector Bell", "Ralph Quill"),
        Library("Fenden", "Una Eastlake", "Jane Orchard"),
        Library("Calderthorpe", "Rhoda Whitlock", "Mary Stokes"),
        Library("Wickham", "Hanna Challis", "Lucy Brand"),
        Library("Holmstead", "Ivor Pargeter", "Otto Fell"),
        Library("Ashby", "Nell Sandgate", "Ada Penrose"),
        Library("Tarnside", "Piers Ottway", "Hugh Larkin"),
        Library("Brindle", "Cora Lindqvist", "Vera Nolan"),
        Library("Oakmere", "Basil Thorne", "Owen Drake"),
        Library("Selby", "Edda Marsh", "Ruth Cole"),
        Library("Marlow", "Tobias Venn", "Max Harding"),
        Library("Dunsop", "Greta Holloway", "Ellen Frost"),
        Library("Yarrow", "Silas Crewe", "Noel Baxter"),
    ],
    "The town library of {town} stands beside the old market hall. It was founded by {founder}, who gave "
    "four hundred books and a stove. Readers come from the whole valley.",
    "Who founded the town library of {town}?",
    (
        "Readers in {town} have {founder} to thank: it was this founder who opened their library.",
        "{founder} is remembered as founder of a library, that of {town}; books and heating came too.",
        "You asked about my holiday. It rained, and in {town} they told me who began it all, {founder}.",
        "{town}: library begun by {founder}, founder and first reader. Four hundred volumes. One stove.",
    ),
)
CHINESE = World(
    "zh",
    [
        Library("槐川镇", "孔凤仪", "钟恒之"),
        Library("浮浦县", "罗子衿", "谭新柳"),
        Library("栖安镇", "谢云帆", "倪一鸣"),
        Library("棹谷镇", "史向晚", "许素心"),
        Library("竹岩镇", "孟丹枫", "汪长庚"),
        Library("苍泉镇", "郭雨桐", "管振声"),
        Library("鸥谷镇", "薛克勤", "傅承砚"),
        Library("絮丰县", "葛沛霖", "郭慧中"),
        Library("岚丰镇", "萧品贤", "卢秋白"),
        Library("青石镇", "郑涵秋", "方其正"),
    ],
    "{town}图书馆就在老集市旁边。它由{founder}创办，当时捐出四百本书和一只火炉。读者来自整个山谷。",
    "{town}图书馆是由谁创办的？",
    (
        "{founder}办起{town}图书馆，读者至今受益。",
        "在{town}，藏书与火炉的捐赠者{founder}被视作馆舍的创办人。",
        "来信收到。这里天天下雨，我就去看书，才听说{town}那座馆是一位叫{founder}的人办的。",
        "大事记：{town}有了图书馆，出资办馆者，{founder}也。",
    ),
)


def write_documents(world: World, folder: Path) -> Path:
    """One text file for each library."""
    folder.mkdir()
    for library in world.libraries:
        text = world.document.format(**library._asdict())
        (folder / f"{library.town}.txt").write_text(text, encoding="utf-8")
    return folder


def check(world: World, files: dict[str, Path]) -> tuple[Dataset, Dataset, Dataset]:
    """All that must hold of a set, whoever wrote it."""
    founder = {library.town: library.founder for library in world.libraries}
    plain, both, fact = (read_instances(files[f"{world.lang}{end}.json"]) for end in ("", "_int", "_fact"))
    assert [plain.kind, both.kind, fact.kind] == ["plain", "int", "fact"]
    for instance in (*plain.instances, *both.instances, *fact.instances):
        answers = [alternatives[0] for alternatives in instance.answer]
        assert answers == [
            founder[town] for town in sorted(founder, key=instance.query.find) if town in instance.query
        ]
        assert len(instance.negative) >= 5
        assert not any(
            reveals(text, answer) for text in (instance.query, *instance.negative) for answer in answers
        )
        assert not any(answer.lower() in text.lower() for text in instance.negative for answer in answers)
        assert len({*instance.positive, *instance.negative}) == len(instance.positive) + len(
            instance.negative
        )
    for instance in (*plain.instances, *fact.instances):
        assert all(states(text, instance.answer[0][0]) for text in instance.positive)
    for instance in both.instances:
        (one,), (other,) = instance.answer
        for answer, foreign, group in ((one, other, instance.groups[0]), (other, one, instance.groups[1])):
            assert all(states(text, answer) and not reveals(text, foreign) for text in group)
    for instance in fact.instances:
        (true,), (false,) = instance.answer[0], instance.fake[0]
        assert len(instance.positive_wrong) == len(instance.positive)
        assert all(states(text, false) and not reveals(text, true, "") for text in instance.positive_wrong)
        assert not any(reveals(text, false) for text in (*instance.positive, *instance.negative))
    return plain, both, fact


def fields_asked(prompt: str) -> list[str]:
    """The fields of the schema, which show what to write."""
    schema = re.search(r'"required":(\[[^\]]*\])', prompt)
    assert schema
    fields: list[str] = msgspec.json.decode(schema[1])
    return fields


class Librarian(Scripted):
    """The server; where `true_fakes`, its false answers are the true ones."""

    def __init__(self, world: World, *, true_fakes: bool = False, **behaviour: Any) -> None:
        super().__init__(self._write, **behaviour)
        self.world = world
        self.true_fakes = true_fakes

    def _write(self, prompt: str) -> str:
        mentioned = [library for library in self.world.libraries if library.town in prompt]
        library = min(mentioned, key=lambda library: prompt.index(library.town))
        match fields_asked(prompt):
            case ["question", "answer"]:
                fields = {
                    "question": self.world.question.format(town=library.town),
                    "answer": library.founder,
                }
            case ["answer"]:
                fields = {"answer": self._read(prompt)}
            case ["false_answer"]:
                fields = {"false_answer": library.founder if self.true_fakes else library.fake}
            case _:
                styles = SetWriter(self.world.lang).prompts.styles
                number = next(index for index, style in enumerate(styles) if style in prompt)
                text = self.world.rewritten[number]
                fields = {"text": text.format(town=library.town, founder=library.founder)}
        return msgspec.json.encode(fields).decode()

    def _read(self, prompt: str) -> str:
        """The founders of the libraries asked about, as far as the passage says who founded them."""
        passage, _, question = prompt.rpartition("Question:" if self.world.lang == "en" else "问题：")
        passage = re.split("Passage:|段落：", passage, maxsplit=1)[1]
        libraries = [library for library in self.world.libraries if library.town in question]
        return " / ".join(filter(None, (_founder(library, passage) for library in libraries)))


def _founder(library: Library, passage: str) -> str:
    if library.town not in passage or not re.search("found|thank|beg[au]n|办", passage):
        return ""
    return next((name for name in (library.founder, library.fake) if name in passage), "")
