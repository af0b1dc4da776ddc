"""The lessons as they lie in this folder: ``NN-name.en.md`` and ``NN-name.zh.md``."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

import attrs

from fsm_agent.lessons.parts import File, Part, Picture, Question, Session, parse
from fsm_agent.scenarios import Scenario, built_in
from fsm_agent.scenarios import parse as parse_scenario

_NAME = re.compile(r"(?P<number>\d\d)-(?P<name>[a-z-]+)\.(?P<lang>en|zh)\.md\Z")


class LessonError(ValueError):
    """A lesson that is not there, or an answer that cannot be checked: one line."""


@attrs.frozen
class Lesson:
    """One lesson in one language."""

    number: int
    name: str
    """Its file's name without the number and the ending, the same in both languages."""
    lang: str
    title: str
    text: str
    """The whole Markdown."""
    parts: tuple[Part, ...]

    @property
    def slug(self) -> str:
        """Number and name, as its files are called."""
        return f"{self.number:02}-{self.name}"

    @property
    def files(self) -> dict[str, str]:
        """The files that it has the reader save, by name."""
        return {part.name: part.text for part in self.parts if isinstance(part, File)}

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(part for part in self.parts if isinstance(part, Question))

    @property
    def sessions(self) -> tuple[Session, ...]:
        return tuple(part for part in self.parts if isinstance(part, Session))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(part for part in self.parts if isinstance(part, Picture))

    def scenario(self, name: str) -> Scenario:
        """The scenario of this name: of a file of the lesson (with or without ``.toml``), or one that comes with the package."""
        text = self.files.get(f"{name.removesuffix('.toml')}.toml")
        return built_in(name) if text is None else parse_scenario(text, name.removesuffix(".toml"))


@lru_cache
def lessons(lang: str) -> tuple[Lesson, ...]:
    """The lessons in a language (``en`` or ``zh``), in order."""
    found = []
    for entry in files(__package__).iterdir():
        name = _NAME.match(entry.name)
        if name is not None and name["lang"] == lang:
            text = entry.read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ").strip()
            found.append(Lesson(int(name["number"]), name["name"], lang, title, text, parse(text)))
    return tuple(sorted(found, key=lambda each: each.number))


def lesson(number: int, lang: str) -> Lesson:
    """The lesson with this number. Raises ``LessonError`` for a number that none has."""
    found = lessons(lang)
    for each in found:
        if each.number == number:
            return each
    raise LessonError(f"there is no lesson {number}; there are {found[0].number} to {found[-1].number}")
