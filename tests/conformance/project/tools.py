from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def ask(ctx: ToolContext, about: str) -> str:
    """Asks whoever is in front."""
    return f"{about}: {ctx.ask(about)}"
