"""An agent of pydantic-ai with the tools of an MCP server."""
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from serve import serve


async def answer(text, history, bank, model):
    provider = OpenAIProvider(base_url=model, api_key="not needed")
    agent = Agent(OpenAIResponsesModel("gpt-5", provider=provider), toolsets=[MCPToolset(bank, read_timeout=5)])
    result = await agent.run(text, message_history=history)
    return result.output, result.all_messages()


serve(answer)
