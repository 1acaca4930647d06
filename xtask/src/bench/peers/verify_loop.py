"""What a verify-and-retry round costs in pydantic-ai, the way a capability does it: processor time of this
process, a model that answers at once. No released version has such a loop; this is one in the shape that was
proposed, with a flag per run."""
import asyncio
import contextvars
import time
from importlib.metadata import version

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

CALLS, ROUNDS = 100, 5
FREE = UsageLimits(request_limit=None)
inside = contextvars.ContextVar("inside", default=False)


async def answer(messages, info):
    return ModelResponse(parts=[TextPart("done")])


class Loop(AbstractCapability):
    def __init__(self):
        self.left = 0

    async def wrap_run(self, ctx, *, handler):
        result = await handler()
        if inside.get():
            return result
        while self.left > 0:
            self.left -= 1
            token = inside.set(True)
            try:
                result = await ctx.agent.run(
                    "Fix only these failing checks: pytest: 1 failed",
                    message_history=result.all_messages(), usage_limits=FREE)
            finally:
                inside.reset(token)
        return result


async def report(name, rounds):
    loop = Loop()
    agent = Agent(FunctionModel(answer), capabilities=[loop])
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            loop.left = rounds
            await agent.run("go", usage_limits=FREE)
        least = min(least, time.process_time_ns() - began)
    print(f"{name}: {least // CALLS} ns")


print(f"pydantic-ai-slim {version('pydantic-ai-slim')}")
for rounds in (0, 3):
    asyncio.run(report(f"verification, {rounds} failing rounds", rounds))
