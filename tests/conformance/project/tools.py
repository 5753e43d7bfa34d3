import asyncio

from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def ask(ctx: ToolContext, about: str) -> str:
    """Asks whoever is in front."""
    return f"{about}: {ctx.ask(about)}"


@tool(risk="read")
async def pause(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "waited"
