"""Holds conversations between the official chat completions client and `hotseat serve`, streamed and unstreamed.

    talk.py URL

Prints one line per conversation, then `PASSED FAILED`, two numbers.
"""
import json
import sys
import traceback
from typing import Optional

import openai
from openai import APIError, BadRequestError, InternalServerError, NotFoundError, OpenAI
from pydantic import BaseModel

client = OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="not needed")

PICK_COLOR = {
    "type": "function",
    "function": {
        "name": "pick_color",
        "description": "Lets the user pick a color",
        "parameters": {"type": "object", "properties": {"for": {"type": "string"}}, "required": ["for"]},
    },
}


class Note(BaseModel):
    """Keeps a note"""

    text: str
    tags: Optional[list[str]] = None


class Talk:
    """A conversation with its history."""

    def __init__(self, stream, **options):
        self.stream = stream
        self.options = options
        self.messages = []
        self.pieces = 0

    def say(self, text):
        self.messages.append({"role": "user", "content": text})
        return self.go_on()

    def answer(self, call, content):
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    def go_on(self):
        """The next answer: its message and finish reason."""
        asked = {"model": "clerk", "messages": self.messages, **self.options}
        if self.stream:
            # The client joins the pieces itself.
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                self.pieces = sum(1 for event in stream if event.type == "content.delta")
                completion = stream.get_final_completion()
        else:
            completion = client.chat.completions.create(**asked)
        assert completion.object == "chat.completion", completion
        assert completion.model == "clerk", completion
        usage = completion.usage
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0, usage
        [choice] = completion.choices
        self.messages.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in self.messages[-1].get("tool_calls") or []:
            call["function"].pop("parsed_arguments", None)
        return choice.message, choice.finish_reason


def several_turns(stream):
    talk = Talk(stream)
    message, reason = talk.say("I am Ada")
    assert (message.content, reason) == ("Hello Ada.", "stop"), (message, reason)
    message, _ = talk.say("say it again")
    assert message.content == 'Ünïcödé 🦀 "quoted" \\ <b>\nand a second line.', message
    message, _ = talk.say("anything else")
    assert message.content == "Yes.", message


def the_agents_own_tools_are_not_shown(stream):
    talk = Talk(stream)
    message, reason = talk.say("order o-9")
    assert message.content == "Let me look.\n\nIt costs 42.5.", message
    assert not message.tool_calls and reason == "stop", (message, reason)
    assert not stream or talk.pieces > 2, talk.pieces
    # In the same conversation the agent still knows the result of its tool.
    message, _ = talk.say("which order was it?")
    assert message.content == "We spoke of o-9.", message


def tools_of_the_client(stream):
    talk = Talk(stream, tools=[PICK_COLOR])
    message, reason = talk.say("color please")
    assert (message.content, reason) == ("Please pick.", "tool_calls"), (message, reason)
    [call] = message.tool_calls
    assert call.function.name == "pick_color" and json.loads(call.function.arguments) == {"for": "walls"}, call
    talk.answer(call, "red")
    message, reason = talk.go_on()
    assert (message.content, reason) == ("Your color is red.", "stop"), (message, reason)
    message, _ = talk.say("two colors please")
    assert len(message.tool_calls) == 2 and not message.content, message
    for call in message.tool_calls:
        talk.answer(call, f"blue for {json.loads(call.function.arguments)['for']}")
    message, _ = talk.go_on()
    assert message.content.startswith("Your color is blue for "), message
    message, _ = talk.say("anything else")
    assert message.content == "Yes.", message


def a_tool_whose_schema_is_made_from_a_class(stream):
    talk = Talk(stream, tools=[openai.pydantic_function_tool(Note)])
    message, _ = talk.say("note that")
    [call] = message.tool_calls
    assert Note(**json.loads(call.function.arguments)) == Note(text="buy milk", tags=["home"]), call
    talk.answer(call, "kept")
    message, _ = talk.go_on()
    assert message.content == "It is noted.", message


def work_beside_the_conversation(stream):
    message, _ = Talk(stream).say("research it")
    assert message.content == "I have started.\n\nIt is 7.", message


def an_agent_speaks_if_it_joins(stream):
    talk = Talk(stream)
    message, _ = talk.say("ask the expert")
    assert message.content == "The expert says: I know.", message
    message, _ = talk.say("call in somebody")
    assert message.content == "I advise it.\n\nYou have heard it.", message


def what_a_person_would_approve_is_declined(stream):
    message, _ = Talk(stream).say("refund 10")
    assert message.content.startswith("There is no refund: "), message


def instructions_and_a_history_from_elsewhere(stream):
    talk = Talk(stream)
    talk.messages = [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": "My name is Ada"},
        {"role": "assistant", "content": "Noted."},
    ]
    message, _ = talk.say("who am I?")
    assert message.content == "Ada, briefly.", message


def a_failure(stream):
    talk = Talk(stream)
    talk.say("I am Ada")
    error = raised(lambda: talk.say("crash"), APIError if stream else InternalServerError)
    assert "simulates a failure" in str(error), error
    talk.messages.pop()
    message, _ = talk.say("anything else")
    assert message.content == "Yes.", message


def what_is_not_done_is_refused(stream):
    error = raised(lambda: Talk(stream, n=2).say("hello"), BadRequestError)
    assert error.param == "n", error
    asked = {"model": "other", "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    error = raised(lambda: client.chat.completions.create(**asked), NotFoundError)
    assert "available agents: clerk" in str(error), error


def models(_stream):
    assert [model.id for model in client.models.list()] == ["clerk"]


def raised(do, kind):
    try:
        do()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


TALKS = [
    several_turns,
    the_agents_own_tools_are_not_shown,
    tools_of_the_client,
    a_tool_whose_schema_is_made_from_a_class,
    work_beside_the_conversation,
    an_agent_speaks_if_it_joins,
    what_a_person_would_approve_is_declined,
    instructions_and_a_history_from_elsewhere,
    a_failure,
    what_is_not_done_is_refused,
    models,
]


def main():
    passed = failed = 0
    for stream in [False, True]:
        for talk in TALKS:
            name = talk.__name__.replace("_", " ") + (", in pieces" if stream else "")
            try:
                talk(stream)
                passed += 1
                print(f"    ok   {name}")
            except Exception:
                failed += 1
                print(f"    FAIL {name}: {traceback.format_exc()}")
    print(f"{passed} {failed}")


main()
