"""Calls a scripted model of Hotseat with the official clients, and with agents of frameworks that use them.

    talk.py URL

Prints one line per conversation, then `PASSED FAILED`, two numbers.
"""
import json
import sys
import traceback

import anthropic
import openai
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

URL = sys.argv[1]
oai = openai.OpenAI(base_url=URL, api_key="not needed", max_retries=0)
ant = anthropic.Anthropic(base_url=URL, api_key="not needed", max_retries=0)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = 'I am Hal: Ünïcödé 🦀 "quoted".'


class Weather(BaseModel):
    """A report."""

    city: str
    degrees: int


def chat(text, stream, tools=None, messages=None, **options):
    """A message of chat completions."""
    messages = messages or [{"role": "system", "content": "You are Hal"}, {"role": "user", "content": text}]
    asked = {"model": "gpt-5", "messages": messages, **options}
    if tools:
        asked["tools"] = tools
    if not stream:
        return oai.chat.completions.create(**asked).choices[0]
    with oai.chat.completions.stream(**asked) as pieces:
        for _ in pieces:
            pass
        return pieces.get_final_completion().choices[0]


def chat_completions(stream):
    said = chat("who are you", stream)
    assert (said.message.content, said.finish_reason) == (HELLO, "stop"), said
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    called = chat("weather in Oslo", stream, tools)
    [call] = called.message.tool_calls
    assert called.finish_reason == "tool_calls" and json.loads(call.function.arguments) == {"city": "Oslo"}, called
    history = [
        {"role": "user", "content": "weather in Oslo"},
        called.message.model_dump(exclude_none=True, exclude={"parsed"}),
        {"role": "tool", "tool_call_id": call.id, "content": "cold"},
    ]
    for item in history[1].get("tool_calls", []):
        item["function"].pop("parsed_arguments", None)
    assert chat("", stream, tools, history).message.content == "It is cold."
    two = chat("two cities", stream, tools).message.tool_calls
    assert [json.loads(call.function.arguments)["city"] for call in two] == ["Oslo", "Lima"], two


def responses(stream):
    def ask(**options):
        if not stream:
            return oai.responses.create(model="gpt-5", **options)
        with oai.responses.stream(model="gpt-5", **options) as pieces:
            text = "".join(event.delta for event in pieces if event.type == "response.output_text.delta")
            whole = pieces.get_final_response()
        assert whole.output_text == text, (whole, text)
        return whole

    assert ask(instructions="You are Hal", input="who are you").output_text == HELLO
    tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}]
    first = ask(input="weather in Lima", tools=tools)
    [call] = [item for item in first.output if item.type == "function_call"]
    assert json.loads(call.arguments) == {"city": "Lima"}, first
    result = [{"type": "function_call_output", "call_id": call.call_id, "output": "warm"}]
    assert ask(input=result, previous_response_id=first.id).output_text == "It is warm."
    assert ask(input="think").output_text == "therefore I am."
    if not stream:
        assert ask(input="be long").incomplete_details.reason == "max_output_tokens"


def messages(stream):
    def ask(talk, **options):
        asked = {"model": "claude", "max_tokens": 100, "messages": talk, **options}
        if not stream:
            return ant.messages.create(**asked)
        with ant.messages.stream(**asked) as pieces:
            text = "".join(pieces.text_stream)
            whole = pieces.get_final_message()
        assert text == "".join(block.text for block in whole.content if block.type == "text"), whole
        return whole

    user = lambda text: [{"role": "user", "content": text}]
    said = ask(user("who are you"), system="You are Hal")
    assert (said.content[0].text, said.stop_reason) == (HELLO, "end_turn"), said
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    called = ask(user("weather in Oslo"), tools=tools)
    text, call = called.content
    assert text.text == "Let me look." and call.input == {"city": "Oslo"}, called
    assert (called.usage.input_tokens, called.usage.output_tokens) == (40, 12), called
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
    talk = user("weather in Oslo") + [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in called.content]},
        {"role": "user", "content": [result]},
    ]
    assert ask(talk, tools=tools).content[0].text == "It is cold."
    thought = ask(user("think"))
    assert thought.content[0].thinking == "I think, " and thought.content[1].text == "therefore I am.", thought
    assert ask(user("be long")).stop_reason == "max_tokens"
    assert ant.messages.count_tokens(model="claude", messages=user("12345678")).input_tokens > 0


def failures(stream):
    for text, kind in [("limited", openai.RateLimitError), ("overloaded", openai.InternalServerError)]:
        error = raised(lambda: chat(text, stream), kind)
        assert "simulates a failure" in str(error), error
    limited = raised(lambda: chat("limited", stream), openai.RateLimitError)
    assert limited.response.headers["retry-after-ms"] == "10", limited.response.headers
    unanswered = raised(lambda: chat("nobody answers this", stream), openai.BadRequestError)
    assert "no rule of" in str(unanswered), unanswered
    ask = lambda text: ant.messages.create(
        model="claude", max_tokens=9, messages=[{"role": "user", "content": text}]
    )
    assert "rate_limit_error" in str(raised(lambda: ask("limited"), anthropic.RateLimitError))
    assert "overloaded_error" in str(raised(lambda: ask("overloaded"), anthropic.APIStatusError))
    raised(lambda: chat("cut", stream), Exception)
    # The client itself retries what may succeed, and nothing else.
    patient = oai.with_options(max_retries=2)
    ask = lambda text: patient.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    raised(lambda: ask("limited"), openai.RateLimitError)
    raised(lambda: ask("nobody answers this"), openai.BadRequestError)


def structured_output(stream):
    if stream:
        return
    parsed = oai.chat.completions.parse(
        model="gpt-5", messages=[{"role": "user", "content": "as JSON"}], response_format=Weather
    )
    assert parsed.choices[0].message.parsed == Weather(city="Oslo", degrees=7), parsed


def pydantic_ai(stream):
    provider = OpenAIProvider(base_url=URL, api_key="not needed")
    claude = AnthropicProvider(base_url=URL, api_key="not needed")
    models = [
        OpenAIChatModel("gpt-5", provider=provider),
        OpenAIResponsesModel("gpt-5", provider=provider),
        AnthropicModel("claude-sonnet-4-5", provider=claude),
    ]
    for model in models:
        agent = Agent(model, instructions="You are Hal")

        @agent.tool_plain
        def get_weather(city: str) -> str:
            return f"cold in {city}"

        async def read(_, events):
            async for _ in events:
                pass

        # With a handler of events the model is streamed.
        options = {"event_stream_handler": read} if stream else {}
        assert agent.run_sync("weather in Oslo", **options).output == "It is cold in Oslo."
        assert agent.run_sync("who are you", **options).output == HELLO


def langgraph(stream):
    def get_weather(city: str) -> str:
        """Tells the weather."""
        return f"cold in {city}"

    models = [
        ChatOpenAI(model="gpt-5", base_url=URL, api_key="not needed", streaming=stream, stream_usage=True),
        ChatOpenAI(model="gpt-5", base_url=URL, api_key="not needed", use_responses_api=True, streaming=stream),
        ChatAnthropic(model="claude-sonnet-4-5", base_url=URL, api_key="not needed", streaming=stream),
    ]
    for model in models:
        agent = create_agent(model, [get_weather], system_prompt="You are Hal")
        said = agent.invoke({"messages": [("user", "weather in Lima")]})["messages"]
        assert said[-1].text == "It is cold in Lima.", said
        assert said[1].usage_metadata["total_tokens"] == 52, said[1]


def raised(do, kind):
    try:
        do()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


TALKS = [
    chat_completions,
    responses,
    messages,
    failures,
    structured_output,
    pydantic_ai,
    langgraph,
]


def main():
    passed = failed = 0
    for stream in [False, True]:
        for talk in TALKS:
            name = talk.__name__.replace("_", " ") + (", streamed" if stream else "")
            try:
                talk(stream)
                passed += 1
                print(f"    ok   {name}")
            except Exception:
                failed += 1
                print(f"    FAIL {name}: {traceback.format_exc()}")
    print(f"{passed} {failed}")


main()
