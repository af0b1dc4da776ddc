"""Files of settings: what they may hold, what is refused with file and name, and that the command line wins."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
import pytest

from fsm_agent.cli.ask import ask
from fsm_agent.cli.config import FILE, PYPROJECT, Settings, SettingsError, find, read
from fsm_agent.cli.resume import resume
from fsm_agent.traces import load
from tests.agent_server import asked, call, desk_fixture, resumed, said
from tests.raw_server import RawServer, raw_server

__all__ = ["desk_fixture", "raw_server"]


def options_of(command: click.Command) -> set[str]:
    return {option.opts[0].removeprefix("--") for option in command.params if isinstance(option, click.Option)}


def test_the_settings_are_the_options_of_the_same_names() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(Settings)}
    assert names == options_of(ask) - {"config", "json"}
    assert options_of(resume) - names == {"config", "json", "yes", "no", "edit"}


ALL = """
model = "openai:m"
base-url = "http://127.0.0.1:1/v1"
temperature = 0
max-reply-tokens = 100
timeout = 60
prices = [1.25, 10]
tools = ["my_tools.py", "fsm_agent.tools"]
mcp = "npx -y server"
mcp-env = ["TOKEN"]
approve = "ask:all"
trace = "run.jsonl"
draw = "run.svg"
guards = "classic"
protocol = "react"
lang = "zh"
last-chance = true
max-retries = 0
max-observation-chars = 500
max-parallel = 2
context = "keep-last:5"
stream = true

[limits]
max_steps = 12
max_cost = 0.5
"max_calls:write_note" = 2
"consecutive_errors.warn_at" = "off"
count_malformed = false

[model-option]
reasoning_effort = "low"
logit_bias = { "50256" = -100 }
"""


def test_every_setting_is_given_as_the_command_line_would(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(ALL)
    found = find(tmp_path)
    assert found is not None
    assert found.source == str(tmp_path / FILE)
    assert found.defaults == {
        "model": "openai:m",
        "base_url": "http://127.0.0.1:1/v1",
        "temperature": 0,
        "max_reply_tokens": 100,
        "timeout": 60,
        "prices": "1.25,10",
        "tools": ["my_tools.py", "fsm_agent.tools"],
        "mcp": ["npx -y server"],
        "mcp_env": ["TOKEN"],
        "approve": "ask:all",
        "trace": "run.jsonl",
        "draw": "run.svg",
        "guards": "classic",
        "protocol": "react",
        "lang": "zh",
        "last_chance": True,
        "max_retries": 0,
        "max_observation_chars": 500,
        "max_parallel": 2,
        "context": "keep-last:5",
        "stream": True,
        "limits": "max_steps=12,max_cost=0.5,max_calls:write_note=2,consecutive_errors.warn_at=off,count_malformed=false",
        "model_option": ['reasoning_effort="low"', 'logit_bias={"50256": -100}'],
    }


def test_pyproject_has_a_table_for_them_and_the_file_of_their_own_comes_first(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    (tmp_path / PYPROJECT).write_text("[project]\nname = 'x'\n")
    assert find(tmp_path) is None
    (tmp_path / PYPROJECT).write_text("[tool.fsm-agent]\nmodel = 'openai:a'\n")
    found = find(tmp_path)
    assert found is not None
    assert (found.source, found.defaults) == (f"{tmp_path / PYPROJECT}, [tool.fsm-agent]", {"model": "openai:a"})
    (tmp_path / FILE).write_text("stream = true\n")
    found = find(tmp_path)
    assert found is not None
    assert found.defaults == {"stream": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("api_key = 'x'", "api_key does not belong into a file: set OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment"),
        ("openai-api-key = 'x'", "openai-api-key does not belong into a file: set OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment"),
        ("model-option = {api_key = 'x'}", "model-option: api_key: a key is given by the environment alone: set OPENAI_API_KEY or ANTHROPIC_API_KEY"),
        ("model-option = {max_tokens = 3}", "model-option: max_tokens: give it with --max-reply-tokens"),
        ("bas_url = 'x'", "bas_url is not known; did you mean base-url?"),
        ("base-url = 'x'\nbase_url = 'y'", "base-url is given twice, with - and with _"),
        ("max_retries = 'three'", 'max_retries is "three"; it must be an integer (>= 0)'),
        ("base-url = 'http://[::1'", "base-url: the address cannot be read: Invalid IPv6 URL"),
        ("base-url = 'http://localhost:99999'", "base-url: the address cannot be read: Port out of range 0-65535"),
        ("timeout = inf", "timeout: inf is no number of seconds from above 0 to 1000000"),
        ("timeout = 1e300", "timeout: 1e+300 is no number of seconds from above 0 to 1000000"),
        ('tools = ["a.py", "b\\u0000.py"]', "tools: there is a NUL character in it"),
        ('trace = "a\\u0000"', "trace: there is a NUL character in it"),
        ('draw = "a\\u0000.svg"', "draw: there is a NUL character in it"),
        ('mcp = "a\\u0000"', "mcp: there is a NUL character in it"),
        ("trace = ''", "trace: it is empty; give a name, or leave it out"),
        ("draw = ' '", "draw: it is empty; give a name, or leave it out"),
        ("tools = ['']", "tools: it is empty; give a name, or leave it out"),
        ("model-option = {name = 'x'}", "model-option: name: no request has a field of this name"),
        (f"[model-option]\n{'a.' * 5000}a = 1", "model-option: its value is nested too deeply"),
        ("modle = 'x'", "modle is not known; did you mean model?"),
        ("max-retries = 'three'", 'max-retries is "three"; it must be an integer (>= 0)'),
        ("max-parallel = 0", "max-parallel is 0; it must be an integer (>= 1)"),
        ("temperature = 'hot'", 'temperature is "hot"; it must be a number'),
        ("temperature = inf", "temperature: inf is no number of a request"),
        ("stream = 1", "stream is 1; it must be true or false"),
        ("tools = [1]", "tools is [1]; it must be text or a list of them"),
        ("trace = 2026-12-01", 'trace is "2026-12-01"; it must be text'),
        ("guards = 'strict'", "guards is \"strict\"; it must be one of 'classic', 'production', 'none'"),
        ("prices = [1]", "prices: '1' is no pair of prices: it is two numbers, IN,OUT: US dollars per million tokens read, and written"),
        ("limits = {max_steps = 1.5}", "limits: max_steps is 1.5; it must be a whole number"),
        ("limits = 'max_steps'", "limits: 'max_steps' is not of the form name=value"),
        ("context = 'all'", "context: 'all' is no context: it is keep-last:STEPS, drop:TOKENS or summarise:TOKENS, with a whole number from 1"),
        ("model =", "not TOML: Invalid value (at end of document)"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_so_is_refused_with_file_and_name(desk: Path, text: str, problem: str) -> None:
    (desk / FILE).write_text(text)
    with pytest.raises(SettingsError) as caught:
        read(desk / FILE)
    assert str(caught.value) == f"{desk / FILE}: {problem}"
    for result in (asked("Do it"), resumed("my_tools.py")):
        assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {FILE}: {problem}\n")


def test_an_option_may_be_written_with_underscores(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("base_url = 'http://127.0.0.1:1'\nlast_chance = true\n")
    found = read(tmp_path / FILE)
    assert found is not None
    assert found.defaults == {"base_url": "http://127.0.0.1:1", "last_chance": True}


def test_what_is_unknown_is_told_with_what_is_known(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("zzz = 1")
    with pytest.raises(SettingsError, match=r"zzz is not known; known are model, base-url, temperature, .*, context, stream$"):
        read(tmp_path / FILE)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"model = '\xff'")
    with pytest.raises(SettingsError, match="not TOML: 'utf-8' codec can't decode byte 0xff"):
        read(tmp_path / FILE)
    (tmp_path / PYPROJECT).write_text("tool = {fsm-agent = 3}")
    with pytest.raises(SettingsError, match=r"tool\.fsm-agent is no table"):
        read(tmp_path / PYPROJECT)


def test_the_command_line_wins_over_the_file(raw: RawServer, desk: Path) -> None:
    (desk / FILE).write_text(
        f'model = "openai:m"\nbase-url = "{raw.url}"\ntools = "no_such_module"\nlimits = {{max_steps = 3}}\nstream = true\nlast-chance = true\ntrace = "run.jsonl"\n'
    )
    raw.first = [said("Done.")]
    result = asked("Do it", "--tools", "my_tools.py", "--no-stream", "--no-last-chance", "--limits", "max_steps=7")
    assert result.exit_code == 0, result.output
    assert result.stderr == f"openai:m · 2 tools (read_note, write_note) · guards production, max_steps=7 · settings of {FILE}\n"
    assert "stream" not in raw.requests[0][1]
    header = load(desk / "run.jsonl").header
    assert header.options.last_chance is False
    assert next(spec.limits for spec in header.guards if spec.reason == "max_steps")["max_steps"] == 7


def test_a_file_can_be_named_and_is_named_again_to_resume(raw: RawServer, desk: Path) -> None:
    (desk / FILE).write_text("nonsense = 1")
    (desk / "mine.toml").write_text(f'model = "openai:m"\nbase-url = "{raw.url}"\ntools = "my_tools.py"\napprove = "wait:all"\n')
    raw.first = [said("", call("read_note", name="list.txt"))]
    result = asked("Do it", "--config", "mine.toml", "--trace", "run.jsonl")
    assert result.exit_code == 4
    line = "fsm-agent resume run.jsonl --config mine.toml --yes 1/1"
    assert result.stdout.splitlines()[-1] == f"  {line}"
    shown = resumed("run.jsonl", "--config", "mine.toml")
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (4, f"  {line}")
    raw.first = [said("Milk.")]
    assert resumed(*line.split()[2:]).exit_code == 0


def test_help_needs_no_settings(desk: Path) -> None:
    (desk / FILE).write_text("nonsense = 1")
    assert asked("--help").exit_code == 0
    assert resumed("--help").exit_code == 0
