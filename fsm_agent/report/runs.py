"""The runs in the page: those worth a look with a player and their path, and the list of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsm_agent.diagrams import path_view, render
from fsm_agent.diagrams.graph import View
from fsm_agent.diagrams.heat import halted
from fsm_agent.language import Language
from fsm_agent.report.collect import Collected, Kept, Kind, Row
from fsm_agent.report.markup import Child, Html, element, joined
from fsm_agent.report.pictures import picture
from fsm_agent.report.players import player
from fsm_agent.report.tables import scrolled

MOST_LISTED = 3000
"""Rows of the list of runs. Of more, those worth a look and the first of the others are listed."""


def figure(view: View, key: str, lang: Language) -> Html:
    """A drawing, and the same in words under it. ``key``: unique in the page."""
    words = element(
        "details",
        element("summary", lang.say("The same as text")),
        scrolled(element("pre", view.text, id=f"{key}-text"), label=view.graph.title),
    )
    drawn = picture(render(view, "svg"), key, view.graph.title, f"{key}-text")
    return element("figure", scrolled(drawn, label=view.graph.title), words)


def worth_a_look(collected: Collected, lang: Language) -> Iterator[Html]:
    """The runs that are kept whole, by kind: what became of each, step by step."""
    say = lang.say
    kinds: tuple[tuple[Kind, str, str], ...] = (
        (
            "false_kill",
            say("False kills"),
            say("They succeeded when they were recorded, and a guard halts them before: was it wrong, or was the run lucky?"),
        ),
        (
            "saved",
            say("Stopped early"),
            say("They failed, or nobody said whether they succeeded, and a guard halts them before. Those that save most come first."),
        ),
        (
            "near_success",
            say("Near misses that succeeded"),
            say("One more, and a guard would have killed them: they speak against lower limits."),
        ),
        ("near_miss", say("Other near misses"), say("One more, and a guard would have stopped them: they speak for lower limits.")),
    )
    for kind, title, hint in kinds:
        if kept := collected.kept.get(kind, []):
            shown = say("{title}: {shown} of {n} shown", title=title, shown=len(kept), n=f"{collected.counts[kind]:,}")
            yield joined([element("h3", shown), element("p", hint, class_="hint"), *(_kept(each, lang) for each in kept)])


def _kept(kept: Kept, lang: Language) -> Html:
    row = kept.row
    view = path_view(kept.run, f"{row.source}:{row.id}", lang)
    name = element("bdi", f"{row.source}:{row.id}", class_="name")
    ends = lang.say("{halt} at step {step} of {steps}", halt=halted(row.reason), step=row.step, steps=row.steps)
    remark = f" ({remark})" if (remark := _remark(row, lang)) else ""
    said = joined([name, " ", ends, ", ", _outcome(row, lang), remark])
    stepped = player(kept.run, row.task or row.id, f"play-{row.number}", lang)
    drawn = figure(view, f"run-{row.number}-path", lang)
    return element("details", element("summary", said), stepped, drawn, id=f"run-{row.number}", class_="run")


def listed(collected: Collected, lang: Language) -> Html:
    """The list of runs, which a little script can search and sort; it stands without."""
    say = lang.say
    rows = _chosen(collected.rows)
    columns = (
        say("run"), say("source"), say("task"), say("outcome"), say("recorded ending"), say("halt reason"), say("at step"), say("of steps"),
        say("calls saved"), say("remark"),
    )  # fmt: skip
    kept = {each.row.number for found in collected.kept.values() for each in found}
    numeric = {6, 7, 8}
    head = element("tr", *(element("th", name, scope="col", class_="n" if i in numeric else None) for i, name in enumerate(columns)))
    body = [_listed(row, kept, lang) for row in rows]
    caption = say("{shown} of {n} runs, under {plan}", shown=f"{len(rows):,}", n=f"{len(collected.rows):,}", plan=collected.plan.name)
    count = element("output", id="count", data_text=say("{shown} of {n} rows shown", shown="{shown}", n="{n}"), aria_live="polite")
    search = element("input", id="search", type="search", autocomplete="off", spellcheck="false")
    finder = element("p", element("label", say("Search the list"), " ", search), " ", count, id="finder", hidden=True)
    table = element("table", element("caption", caption, id="runs-caption"), element("thead", head), element("tbody", *body), id="runs")
    return joined([finder, scrolled(table, labelled_by="runs-caption")])


def _chosen(rows: Sequence[Row]) -> Sequence[Row]:
    if len(rows) <= MOST_LISTED:
        return rows
    first = sorted(rows, key=lambda row: (row.kind is None, row.number))[:MOST_LISTED]
    return sorted(first, key=lambda row: row.number)


def _listed(row: Row, kept: set[int], lang: Language) -> Html:
    name: Child = element("a", row.id, href=f"#run-{row.number}") if row.number in kept else row.id
    return element(
        "tr",
        element("th", name, scope="row"),
        *(element("td", cell) for cell in (row.source, row.task, _outcome(row, lang), row.ending, row.reason or lang.say("not ended"))),
        *(element("td", str(number), class_="n") for number in (row.step, row.steps, row.saved)),
        element("td", _remark(row, lang)),
    )


def _outcome(row: Row, lang: Language) -> str:
    return {"success": lang.say("success"), "failure": lang.say("failure")}.get(row.outcome, lang.say("unknown"))


def _remark(row: Row, lang: Language) -> str:
    if row.killed:
        return lang.say("false kill")
    if row.saved:
        return lang.say("stopped early")
    said = [lang.say("near miss: {guards}", guards=", ".join(row.near))] if row.near else []
    said += [lang.say("no guard would have helped")] if row.helpless else []
    return "; ".join([*said, lang.say("beyond the recording")] if row.beyond else said)
