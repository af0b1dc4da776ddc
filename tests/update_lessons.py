"""Puts what the commands print now into the lessons: ``python -m tests.update_lessons``."""

import tempfile
from pathlib import Path

import fsm_agent.lessons
from fsm_agent.language import LANGUAGES
from fsm_agent.lessons import lessons
from tests.lesson_sessions import current

if __name__ == "__main__":
    for lang in LANGUAGES:
        for lesson in lessons(lang):
            with tempfile.TemporaryDirectory() as folder:
                text = current(lesson, Path(folder))
            path = Path(fsm_agent.lessons.__file__).parent / f"{lesson.slug}.{lang}.md"
            if text != lesson.text:
                path.write_text(text, encoding="utf-8", newline="\n")
                print("updated", path.name)
