"""Each scenario's transcript, whole, in both languages."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from fsm_agent.cli import cli

EXPECTED = {
    ("a", "en"): """\
[step 1] LLM output: TOOL add a=3,b=4
[step 1] tool add returned: 7
[step 2] LLM output: TOOL mul a=7,b=5
[step 2] tool mul returned: 35
[step 3] LLM output: TOOL now
[step 3] tool now returned: (now)
[step 4] LLM output: FINAL (3+4)*5 = 35，当前时间见最后一次观察结果。
[step 4] FINAL received, the loop ends normally
final answer: (3+4)*5 = 35，当前时间见最后一次观察结果。
LLM calls: 4
""",
    ("a", "zh"): """\
[step 1] LLM 输出: TOOL add a=3,b=4
[step 1] 工具 add 返回: 7
[step 2] LLM 输出: TOOL mul a=7,b=5
[step 2] 工具 mul 返回: 35
[step 3] LLM 输出: TOOL now
[step 3] 工具 now 返回: (now)
[step 4] LLM 输出: FINAL (3+4)*5 = 35，当前时间见最后一次观察结果。
[step 4] 收到 FINAL，循环正常结束
最终回答: (3+4)*5 = 35，当前时间见最后一次观察结果。
LLM 调用次数: 4
""",
    ("b", "en"): """\
[step 1] LLM output: TOOL add a=3,b=4
[step 1] tool add returned: 7
[step 2] LLM output: TOOL add a=3,b=4
[step 2] tool add returned: 7
[step 3] LLM output: TOOL add a=3,b=4
final answer: stopped: repeated call add{a=3, b=4}, the model is going in circles
LLM calls: 3
""",
    ("b", "zh"): """\
[step 1] LLM 输出: TOOL add a=3,b=4
[step 1] 工具 add 返回: 7
[step 2] LLM 输出: TOOL add a=3,b=4
[step 2] 工具 add 返回: 7
[step 3] LLM 输出: TOOL add a=3,b=4
最终回答: 终止：检测到重复调用 add{a=3, b=4}，模型陷入循环
LLM 调用次数: 3
""",
    ("c", "en"): """\
[step 1] LLM output: TOOL add a=三,b=四
[step 1] tool add returned: TOOL_ERROR: add expected an integer, got a=三, b=四
[step 2] LLM output: TOOL search q=天气
[step 2] tool search returned: TOOL_ERROR: unknown tool search
final answer: stopped: 2 failed tool calls in a row, circuit breaker tripped
LLM calls: 2
""",
    ("c", "zh"): """\
[step 1] LLM 输出: TOOL add a=三,b=四
[step 1] 工具 add 返回: TOOL_ERROR: add 的参数必须是整数，收到 a=三, b=四
[step 2] LLM 输出: TOOL search q=天气
[step 2] 工具 search 返回: TOOL_ERROR: 未注册的工具 search
最终回答: 终止：连续 2 次工具调用失败，熔断退出
LLM 调用次数: 2
""",
    ("d", "en"): """\
[step 1] LLM output: TOOL add a=1,b=1
[step 1] tool add returned: 2
[step 2] LLM output: TOOL add a=1,b=2
[step 2] tool add returned: 3
[step 3] LLM output: TOOL add a=1,b=3
[step 3] tool add returned: 4
[step 4] LLM output: TOOL add a=1,b=4
[step 4] tool add returned: 5
[step 5] LLM output: TOOL add a=1,b=5
[step 5] tool add returned: 6
[step 6] LLM output: TOOL add a=1,b=6
[step 6] tool add returned: 7
final answer: stopped: reached the cap of 6 steps, halted so that an endless loop cannot burn the budget
LLM calls: 6
""",
    ("d", "zh"): """\
[step 1] LLM 输出: TOOL add a=1,b=1
[step 1] 工具 add 返回: 2
[step 2] LLM 输出: TOOL add a=1,b=2
[step 2] 工具 add 返回: 3
[step 3] LLM 输出: TOOL add a=1,b=3
[step 3] 工具 add 返回: 4
[step 4] LLM 输出: TOOL add a=1,b=4
[step 4] 工具 add 返回: 5
[step 5] LLM 输出: TOOL add a=1,b=5
[step 5] 工具 add 返回: 6
[step 6] LLM 输出: TOOL add a=1,b=6
[step 6] 工具 add 返回: 7
最终回答: 终止：达到最大步数 6，强制停止，防止无限循环烧光预算
LLM 调用次数: 6
""",
    ("e", "en"): """\
[step 1] LLM output: Let me think about this first.
[step 1] correction: The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'Let me think about this first.'.
[step 2] LLM output: The sum of three and four should be seven.
[step 2] correction: The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'The sum of three and four should be seve'.
final answer: stopped: 2 unparseable replies in a row, circuit breaker tripped
LLM calls: 2
""",
    ("e", "zh"): """\
[step 1] LLM 输出: Let me think about this first.
[step 1] 纠正: 输出无法解析：输出必须以 TOOL 或 FINAL 开头，收到 'Let me think about this first.'。
[step 2] LLM 输出: The sum of three and four should be seven.
[step 2] 纠正: 输出无法解析：输出必须以 TOOL 或 FINAL 开头，收到 'The sum of three and four should be seve'。
最终回答: 终止：连续 2 次输出无法解析，熔断退出
LLM 调用次数: 2
""",
    ("f", "en"): """\
[step 1] LLM output: TOOL add a=三,b=四
[step 1] tool add returned: TOOL_ERROR: add expected an integer, got a=三, b=四
[step 2] LLM output: TOOL add a=3,b=4
[step 2] tool add returned: 7
[step 3] LLM output: FINAL 7
[step 3] FINAL received, the loop ends normally
final answer: 7
LLM calls: 3
""",
    ("f", "zh"): """\
[step 1] LLM 输出: TOOL add a=三,b=四
[step 1] 工具 add 返回: TOOL_ERROR: add 的参数必须是整数，收到 a=三, b=四
[step 2] LLM 输出: TOOL add a=3,b=4
[step 2] 工具 add 返回: 7
[step 3] LLM 输出: FINAL 7
[step 3] 收到 FINAL，循环正常结束
最终回答: 7
LLM 调用次数: 3
""",
}

EXIT = {"a": 0, "b": 3, "c": 3, "d": 3, "e": 3, "f": 0}


@pytest.mark.parametrize(("name", "lang"), EXPECTED)
def test_a_scenario_prints_exactly_its_transcript(name: str, lang: str) -> None:
    result = CliRunner().invoke(cli, ["run", name, "--lang", lang])
    assert re.sub(r"\d{4}-\d\d-\d\dT\S+", "(now)", result.stdout) == EXPECTED[name, lang]
    assert result.stderr == ""
    assert result.exit_code == EXIT[name]


def test_mixed_errors_are_named_with_their_kinds() -> None:
    from fsm_agent import ScriptedModel, classic, run

    scripts = ScriptedModel(["TOOL search q=1", "I wonder"])
    assert run("t", model=scripts, guards=classic(max_errors=2), lang="en").message == (
        "stopped: 2 errors in a row (failed tool calls: 1, unparseable replies: 1), circuit breaker tripped"
    )
    scripts = ScriptedModel(["TOOL search q=1", "I wonder"])
    assert (
        run("t", model=scripts, guards=classic(max_errors=2), lang="zh").message
        == "终止：连续 2 次出错（工具调用失败 1 次，输出无法解析 1 次），熔断退出"
    )
