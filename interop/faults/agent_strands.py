"""An agent of Strands with the tools of an MCP server."""
from serve import serve
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient


async def answer(text, history, bank, model):
    chat = OpenAIModel(client_args={"base_url": model, "api_key": "not needed"}, model_id="gpt-5")
    with MCPClient(url=bank) as client:
        agent = Agent(model=chat, tools=client.list_tools_sync(), messages=history, callback_handler=None)
        result = await agent.invoke_async(text)
        return str(result).strip(), agent.messages


serve(answer)
