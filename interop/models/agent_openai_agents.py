"""An agent of the OpenAI Agents SDK, whose model is where OPENAI_BASE_URL says."""
from agents import Agent, Runner, function_tool, set_tracing_disabled
from lines import converse

# Traces would be sent to OpenAI.
set_tracing_disabled(True)


@function_tool
def get_weather(city: str) -> str:
    """Returns the weather in a city."""
    return f"cold in {city}"


agent = Agent(name="clerk", instructions="You know the weather.", tools=[get_weather])
history = []


def answer(text):
    result = Runner.run_sync(agent, [*history, {"role": "user", "content": text}])
    history[:] = result.to_input_list()
    return result.final_output


converse(answer)
