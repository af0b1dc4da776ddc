"""The README's claims: its table is the table, its commands and outputs are real."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fsm_agent.cli import cli
from fsm_agent.cli.table import markdown
from fsm_agent.scenarios import load_all, parse
from fsm_agent.table import ROWS
from tests.aimock import Aimock, aimock_fixture, aimock_server
from tests.mcp_servers import filesystem
from tests.update_readme import DATA, FILES, limits_table, replaced

__all__ = ["aimock_fixture", "aimock_server"]  # fixtures are found by being here

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


NPX = "npx -y @modelcontextprotocol/server-filesystem ."

REPLIES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "How many more people", "hasToolResult": False},
        "response": {
            "toolCalls": [
                {"id": "call_1", "name": "population", "arguments": '{"city": "Paris"}'},
                {"id": "call_2", "name": "population", "arguments": '{"city": "Lyon"}'},
            ]
        },
    },
    {"match": {"toolCallId": "call_2", "toolResultContains": "522250"}, "response": {"content": "1,580,400 more."}},
    {
        "match": {"userMessage": "What is in notes.txt?", "hasToolResult": False},
        "response": {"toolCalls": [{"id": "call_3", "name": "read_text_file", "arguments": '{"path": "notes.txt"}'}]},
    },
    {"match": {"toolCallId": "call_3", "toolResultContains": "buy milk"}, "response": {"content": "It says: buy milk."}},
]
"""What the model of the examples says. An answer follows only on what the tools really returned."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_transition_table_is_current() -> None:
    found = re.search(r"<!-- table: .*? -->\n(.*?)<!-- end of table -->", README, re.DOTALL)
    assert found is not None
    assert found[1] == markdown(ROWS) + "\n"


@pytest.mark.skipif(not all((DATA / file).exists() for file in FILES), reason="the recorded runs in ../shared/data are not here")
def test_the_table_of_limits_is_what_the_recorded_runs_give() -> None:
    assert replaced(README, "limits", limits_table()) == README, "run `python -m tests.update_readme`"


def test_the_scenario_table_says_how_they_end() -> None:
    rows = re.findall(r"^\| ([a-f]) \| .*? \| `(\w+)` \| (\d+) \|$", README, re.MULTILINE)
    scenarios = load_all()
    assert rows == [(name, scenarios[name].expect.reason, str(scenarios[name].expect.model_calls)) for name in "abcd"]


def test_the_console_sessions_are_what_the_commands_print() -> None:
    sessions = [part for block in blocks("console") for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    assert sessions
    for session in sessions:
        command, _, output = session.partition("\n")
        result = CliRunner().invoke(cli, shlex.split(command)[1:], env={"LC_ALL": "C"})
        assert result.output == output


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_example_prints_what_stands_below_it(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A model by name is played by aimock, and a server of tools is the one from npm as the tests have installed it."""
    code = blocks("python")[number]
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("buy milk", encoding="utf-8")
    if '"openai:' in code:
        aimock: Aimock = request.getfixturevalue("aimock")
        monkeypatch.setenv("OPENAI_BASE_URL", aimock.base_url("openai"))
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        aimock.add(*REPLIES)
    if NPX in code:
        code = code.replace(f'"{NPX}"', repr(filesystem(tmp_path)))
    exec(code, {"__name__": "readme"})
    assert capsys.readouterr().out == blocks("text")[number]


def test_the_scenario_example_ends_as_it_says(tmp_path: Path) -> None:
    text = blocks("toml")[0]
    assert parse(text, "my").expect.reason == tomllib.loads(text)["expect"]["reason"]
    (tmp_path / "my.toml").write_text(text, encoding="utf-8")
    assert CliRunner().invoke(cli, ["run", str(tmp_path / "my.toml")]).exit_code == 0


def test_every_command_is_listed() -> None:
    listed = set(re.findall(r"^\| `fsm-agent (\w+)", README, re.MULTILINE))
    assert listed == set(cli.commands)


def test_every_link_to_a_file_leads_to_one() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z-]+)", README)) - {"or"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_top_level_holds_nothing_but_what_is_agreed() -> None:
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: there is nothing to list")
    top = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} == {
        "pyproject.toml",
        "README.md",
        "Makefile",
        "LICENSE",
        "fsm_agent",
        "tests",
        "diagrams",
    }


def test_every_pattern_of_the_coverage_bar_matches_a_file() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (patterns,) = re.findall(r"^CORE := (.+)$", makefile, re.MULTILINE)
    assert all(list(ROOT.glob(pattern)) for pattern in patterns.split(","))
