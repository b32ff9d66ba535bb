"""An agent of pydantic-ai, whose model is where OPENAI_BASE_URL says."""
from lines import converse
from pydantic_ai import Agent

agent = Agent("openai:gpt-5", system_prompt="You know the weather.")


@agent.tool_plain
def get_weather(city: str) -> str:
    """Returns the weather in a city."""
    return f"cold in {city}"


history = []


def answer(text):
    result = agent.run_sync(text, message_history=history)
    history[:] = result.all_messages()
    return result.output


converse(answer)
