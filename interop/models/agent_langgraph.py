"""An agent of langgraph, whose model is where ANTHROPIC_BASE_URL says."""
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from lines import converse


def get_weather(city: str) -> str:
    """Returns the weather in a city."""
    return f"cold in {city}"


agent = create_agent(ChatAnthropic(model="claude"), tools=[get_weather])
history = []


def answer(text):
    history.append({"role": "user", "content": text})
    history[:] = agent.invoke({"messages": history})["messages"]
    return history[-1].text


converse(answer)
