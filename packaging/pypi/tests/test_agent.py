"""Agents that are Python functions, tested by the program."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Callable

import pytest
from conftest import Project

import hotseat

SUITE = """
name: a conversation
turns:
  - user: one
    assert: { tools: { require: [{ name: look, args_match: { at: "^one$" }, result_match: found }] } }
  - user: two
    assert: { text: { must_match: "2 messages of one conversation" } }
"""

FORMS = {
    "a list": """
def agent(turn):
    return answer(turn)
""",
    "a generator": """
def agent(turn):
    yield from answer(turn)
""",
    "a coroutine": """
import asyncio
async def agent(turn):
    await asyncio.sleep(0)
    return answer(turn)
""",
    "an asynchronous generator": """
import asyncio
async def agent(turn):
    for part in answer(turn):
        await asyncio.sleep(0)
        yield part
""",
}

CONFTEST = """
import hotseat
import pytest

first = {{}}


def answer(turn):
    spoken = [message for message in turn.messages if message["role"] == "user"]
    same = first.setdefault(spoken[0]["content"], turn.conversation_id) == turn.conversation_id
    call = hotseat.ToolCall("look", {{"at": turn.text}}, result={{"it": "found"}})
    return [call, f"{{len(spoken)}} messages of {{'one' if same else 'another'}} conversation"]

{form}

@pytest.fixture(scope="session")
def hotseat_agent():
    return agent
"""


@pytest.mark.parametrize("form", FORMS)
def test_an_agent_is_any_kind_of_function(project: Project, form: str) -> None:
    project.file("conftest.py", CONFTEST.format(form=FORMS[form]))
    project.file("a.test.yaml", SUITE)
    project.pytest().assert_outcomes(passed=1)


def test_a_wrong_answer_is_a_failure_of_the_agent(project: Project) -> None:
    project.file("conftest.py", CONFTEST.format(form="def agent(turn):\n    return {'text': 'x'}\n"))
    project.file("a.test.yaml", "name: a\nturns: [{ user: hello }]\n")
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*TypeError: the agent returned dict; expected text and tool calls*"])


EMPTY = {
    "None": ("def agent(turn):\n    pass\n", "the agent returned None"),
    "None of a coroutine": ("async def agent(turn):\n    pass\n", "the agent returned None"),
    "no parts": ("def agent(turn):\n    return []\n", "the answer of the agent is empty"),
    "a generator without parts": ("def agent(turn):\n    yield from ()\n", "the answer of the agent is empty"),
    "empty texts": ("async def agent(turn):\n    yield ''\n    yield ''\n", "the answer of the agent is empty"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_answer_is_a_failure_of_the_agent(project: Project, kind: str) -> None:
    form, message = EMPTY[kind]
    project.file("conftest.py", CONFTEST.format(form=form))
    project.file(
        "a.test.yaml",
        "name: a\nturns: [{ user: hello }]\nassert: { tools: { forbid: [refund] }, text: { must_not_match: sorry } }\n",
    )
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_one_project_has_one_agent(project: Project) -> None:
    project.file("a.test.yaml", "name: a\nturns: [{ user: hello }]\n")
    project.file("deep/b.test.yaml", "name: b\nturns: [{ user: hello }]\n")
    project.file(
        "deep/conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef hotseat_agent():\n    return lambda turn: 'other'\n",
    )
    result = project.pytest()
    result.stdout.fnmatch_lines(["*hotseat_agent: the cases of * have several agents*"])
    assert result.ret != 0


def test_fixtures_of_the_session_are_active_during_the_run(project: Project) -> None:
    source = (project.root / "conftest.py").read_text()
    fixture = "\n@pytest.fixture(scope='session', autouse=True)\ndef database():\n    os.environ['DATABASE'] = 'ready'\n"
    project.file("conftest.py", source.replace("return f\"You said", "return os.environ['DATABASE'] + f\"You said") + fixture)
    project.file("a.test.yaml", "name: a\nturns: [{ user: hello, assert: { text: { must_match: ^ready } } }]\n")
    project.pytest().assert_outcomes(passed=1)


def post(url: str, body: bytes) -> list[dict[str, Any]]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        lines = response.read().decode().splitlines()
    return [json.loads(line[len("data: ") :]) for line in lines if line]


def test_a_tool_that_fails() -> None:
    with hotseat.serve(lambda turn: hotseat.ToolCall("look", error="no light")) as server:
        events = post(server.url, b"{}")
    assert events[-2]["type"] == "TOOL_CALL_RESULT" and events[-2]["error"] == "no light"


def test_serve() -> None:
    def greet(turn: hotseat.Turn) -> str:
        return f"Hello {turn.text}"

    with hotseat.serve(greet) as server:
        events = post(
            server.url,
            json.dumps(
                {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": [{"type": "text", "text": "Ann"}]}]}
            ).encode(),
        )
        assert [event["type"] for event in events] == [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert events[2]["delta"] == "Hello Ann"
        for wrong in (b"[]", b"{", b"\xff"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                post(server.url, wrong)
            assert refused.value.code == 400
    with pytest.raises(urllib.error.URLError):
        post(server.url, b"{}")


def test_an_exit_of_an_asynchronous_agent_ends_only_its_conversation() -> None:
    async def agent(turn: hotseat.Turn) -> str:
        if turn.text == "exit":
            raise SystemExit(3)
        return "Hello."

    def ask(text: str) -> list[str]:
        body = {"messages": [{"role": "user", "content": text}]}
        return [event["type"] for event in post(server.url, json.dumps(body).encode())]

    with hotseat.serve(agent) as server:
        for _ in range(2):
            assert ask("exit") == ["RUN_STARTED", "RUN_ERROR"]
            assert ask("hello")[-1] == "RUN_FINISHED"


ENDS = [
    (lambda: SystemExit(3), "SystemExit: 3"),
    # As of a database that the agent uses.
    (lambda: ConnectionResetError("the database is gone"), "ConnectionResetError: the database is gone"),
    (lambda: BrokenPipeError("a pipe"), "BrokenPipeError: a pipe"),
]


@pytest.mark.parametrize(("error", "message"), ENDS, ids=[message for _, message in ENDS])
def test_every_exception_is_reported(error: Callable[[], BaseException], message: str) -> None:
    def agent(turn: hotseat.Turn) -> str:
        raise error()

    with hotseat.serve(agent) as server:
        events = post(server.url, b"{}")
    assert [event["type"] for event in events] == ["RUN_STARTED", "RUN_ERROR"]
    assert events[1]["message"].startswith(f"{message} (test_agent.py:")


def test_arguments_that_json_cannot_hold() -> None:
    with hotseat.serve(lambda turn: hotseat.ToolCall("pay", {"amount": float("nan")})) as server:
        events = post(server.url, b"{}")
    assert events[-1]["type"] == "RUN_ERROR" and "not JSON compliant" in events[-1]["message"]
