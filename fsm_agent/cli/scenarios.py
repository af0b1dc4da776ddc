"""``fsm-agent scenarios``: what can be run."""

from __future__ import annotations

import click

from fsm_agent.cli.common import faults, json_option, lang_option, print_json, print_table
from fsm_agent.language import Language


@click.command()
@lang_option
@click.option("--only", metavar="NAME", help="One scenario, in one line.")
@json_option
def scenarios(lang: Language, only: str | None, *, as_json: bool) -> None:
    """List the scenarios that come with the package, and how each must end."""
    from fsm_agent.scenarios import built_in, load_all

    if only is not None:
        with faults():
            scenario = built_in(only)
        click.echo(f"{only}. {scenario.titled(lang.code)}. {scenario.taught(lang.code)}")
        return
    found = load_all()
    if as_json:
        print_json(
            {
                name: {"title": s.titled(lang.code), "teaches": s.taught(lang.code), "task": s.task, "expect": s.expect}
                for name, s in found.items()
            }
        )
        return
    rows = [
        (name, s.titled(lang.code), s.expect.reason or "", s.expect.model_calls or "", s.taught(lang.code)) for name, s in found.items()
    ]
    print_table("", [lang.say("name"), lang.say("title"), lang.say("must end as"), lang.say("model calls"), lang.say("teaches")], rows)
