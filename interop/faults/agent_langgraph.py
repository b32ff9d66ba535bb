"""An agent of langgraph with the tools of an MCP server."""
from datetime import timedelta

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_mcp_adapters.client import MultiServerMCPClient
from serve import serve


async def answer(text, history, bank, model):
    timeout = {"read_timeout_seconds": timedelta(seconds=5)}
    client = MultiServerMCPClient({"bank": {"transport": "streamable_http", "url": bank, "session_kwargs": timeout}})
    chat = ChatAnthropic(model="claude", base_url=model, api_key="not needed")
    agent = create_agent(chat, tools=await client.get_tools())
    messages = (await agent.ainvoke({"messages": [*history, {"role": "user", "content": text}]}))["messages"]
    return messages[-1].text, messages


serve(answer)
