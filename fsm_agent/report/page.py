"""The page: one HTML file without any link to the network, which forbids by its own policy what it does not need."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import attrs

from fsm_agent.audit.audit import Audit
from fsm_agent.audit.chart import ChartError, chart
from fsm_agent.audit.figures import Share, percent
from fsm_agent.audit.notes import notes, pooled_note
from fsm_agent.diagrams.diff import diff_view
from fsm_agent.diagrams.heat import heat_view
from fsm_agent.diagrams.text import one_line
from fsm_agent.language import Language
from fsm_agent.player import content_policy, player_script, player_style
from fsm_agent.report.collect import Collected
from fsm_agent.report.markup import Html, element, joined
from fsm_agent.report.pictures import dark_rules, picture
from fsm_agent.report.runs import figure, listed, worth_a_look
from fsm_agent.report.tables import Placed, pooled_rows, scrolled, tables

MOST_DAMAGED = 200
"""Damaged runs that are named."""


@attrs.frozen
class Told:
    """What the reader is told of how the page came about."""

    title: str
    """Which runs they are."""
    group: str
    """What they are grouped by, as a column's title."""
    command: str
    """What makes the page again."""


@attrs.frozen
class Section:
    """A part of the page."""

    key: str
    title: str
    parts: tuple[Html, ...]


def page(audit: Audit, collected: Collected, told: Told, lang: Language) -> bytes:
    """The page as UTF-8. The same runs and the same question always give the same bytes."""
    sections = [section for section in _sections(audit, collected, told, lang) if section.parts]
    links = element("ul", *(element("li", element("a", section.title, href=f"#{section.key}")) for section in sections))
    main = element(
        "main",
        element("h1", told.title),
        *(element("p", line, class_="lead" if i == 0 else None) for i, line in enumerate(_summary(audit, lang))),
        element("ul", *(element("li", note) for note in notes(audit, lang)), class_="notes"),
        element("nav", links, aria_label=lang.say("Contents")),
        *(element("section", element("h2", each.title, id=each.key), *each.parts, aria_labelledby=each.key) for each in sections),
    )
    footer = element("footer", element("p", lang.say("Made by:"), " ", element("code", told.command)))
    return _document(told.title, joined([main, footer]), lang).markup.encode()


def _document(title: str, body: Html, lang: Language) -> Html:
    style, script, play = f"{_resource('page.css')}{dark_rules()}\n{player_style()}", _resource("page.js"), player_script()
    policy = content_policy([style], [script, play])
    scripts = (element("template", element("script", Html(play)), id="play"), element("script", Html(script)))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(style)),
    )
    document = element("html", head, element("body", body, *scripts), lang=lang.code)
    return joined([Html("<!DOCTYPE html>\n"), document, "\n"])


def _sections(audit: Audit, collected: Collected, told: Told, lang: Language) -> Iterator[Section]:
    say = lang.say
    placed = list(tables(audit, lang, told.group))
    warning = (element("p", pooled_note(audit.base, lang), class_="warning"),) if pooled_rows(audit) else ()
    plan = say("under {guards}", guards=collected.plan.name)
    heat = figure(heat_view(collected.heat, f"{told.title}, {plan}", lang), "heat", lang) if collected.heat.runs else None
    yield Section("why", say("Why the runs stopped"), (*_of("stops", placed), *([heat] if heat else [])))
    if guards := _of("guards", placed):
        yield Section("guards", say("What the guards stop, and what they kill"), (*warning, *guards))
    if limits := _of("limits", placed):
        yield Section("limits", say("Other limits"), (*warning, *_chart(audit, lang), *limits))
    yield Section("diff", say("Successes and failures side by side"), tuple(_diff(collected, lang)))
    yield Section("look", say("Runs worth a look"), tuple(worth_a_look(collected, lang)))
    yield Section("all", say("All runs"), (listed(collected, lang),) if collected.rows else ())
    yield Section("damaged", say("Damaged runs"), tuple(_damaged(audit, lang)))


def _of(section: str, placed: list[Placed]) -> tuple[Html, ...]:
    return tuple(each.html for each in placed if each.section == section)


def _summary(audit: Audit, lang: Language) -> Iterator[str]:
    """The answer in two sentences, the good and the bad together."""
    pooled, row = audit.pooled, audit.base.together()
    yield lang.say(
        "{runs} runs with {calls} model calls: {successes} succeeded, {failures} failed, {unknown} unknown.",
        runs=f"{pooled.runs:,}", calls=f"{pooled.model_calls:,}", successes=f"{pooled.successes:,}", failures=f"{pooled.failures:,}",
        unknown=f"{pooled.unknown:,}",
    )  # fmt: skip
    yield lang.say(
        "Under {plan}, {stopped} failed runs are stopped, which saves {saved} of their model calls; {killed} successful runs are killed.",
        plan=audit.base.plan.name, stopped=_of_all(row.failures_stopped, lang), saved=_of_all(row.calls_saved, lang),
        killed=_of_all(row.false_kills, lang),
    )  # fmt: skip


def _of_all(share: Share, lang: Language) -> str:
    if share.share is None:
        return lang.say("none of 0")
    return lang.say("{n} of {of} ({share})", n=f"{share.count:,}", of=f"{share.of:,}", share=percent(share.share))


def _chart(audit: Audit, lang: Language) -> Iterator[Html]:
    """The sweeps as a picture; where it cannot be drawn, why."""
    if not audit.sweeps:
        return
    title = lang.say("{limits}: what each value saves and kills", limits=", ".join(sweep.limit for sweep in audit.sweeps))
    yield element(
        "p",
        lang.say("Choose a value where many calls are saved and next to no run is killed, by the line of runs like yours."),
        class_="hint",
    )
    try:
        drawn = picture(chart(audit, "svg"), "chart", title, "limits")
    except ChartError as error:
        yield element("p", str(error), class_="warning")
    else:
        yield element("figure", scrolled(drawn, label=title), element("figcaption", title))


def _diff(collected: Collected, lang: Language) -> Iterator[Html]:
    first, second = collected.successes, collected.failures
    if first.runs and second.runs:
        yield element(
            "p",
            lang.say("How the runs went when they were recorded, without any guard: what failures do more of is where they fail."),
            class_="hint",
        )
        view = diff_view(first, second, ("outcome=success", "outcome=failure"), lang.say("as recorded"), lang)
        yield figure(view, "diff-picture", lang)


def _damaged(audit: Audit, lang: Language) -> Iterator[Html]:
    if audit.damaged:
        yield element("p", lang.say("They could not be read, and are in no figure of this page."), class_="hint")
        yield element("ul", *(element("li", one_line(f"{each.place}: {each.problem}", 300)) for each in audit.damaged[:MOST_DAMAGED]))
        if (more := len(audit.damaged) - MOST_DAMAGED) > 0:
            yield element("p", lang.say("… and {n} more …", n=more))


def _resource(name: str) -> str:
    return (files("fsm_agent.report") / name).read_text(encoding="utf-8").replace("\r\n", "\n")
