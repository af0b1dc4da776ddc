"""ReAct as a state machine, in eight lessons and one: the texts (``NN-name.LANG.md``), their exercises, and how they are shown.

``load`` reads a lesson into ``parts``; ``exercises`` says what each asks for, and ``checking`` runs the answer; ``showing`` and ``website``
show lessons, with the pictures that ``embed`` makes.
"""

from fsm_agent.lessons.load import Lesson, LessonError, lesson, lessons

__all__ = ["Lesson", "LessonError", "lesson", "lessons"]
