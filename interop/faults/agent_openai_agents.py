"""An agent of the OpenAI Agents SDK with the tools of an MCP server."""
from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI
from serve import serve

# Traces would be sent to OpenAI.
set_tracing_disabled(True)


async def answer(text, history, bank, model):
    chat = OpenAIResponsesModel("gpt-5", AsyncOpenAI(base_url=model, api_key="not needed"))
    async with MCPServerStreamableHttp({"url": bank}, client_session_timeout_seconds=5) as server:
        agent = Agent(name="clerk", instructions="You pay orders.", model=chat, mcp_servers=[server])
        result = await Runner.run(agent, [*history, {"role": "user", "content": text}])
        return result.final_output, result.to_input_list()


serve(answer)
