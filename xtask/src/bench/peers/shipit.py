"""What shipit_agent's verifier costs itself: processor time of this process, a judge that answers at once."""
import json
import time
from importlib.metadata import version

from shipit_agent.verifier import PreToolVerifier, ProgressVerifier, VerifierConfig

CALLS, ROUNDS = 5000, 7
ALLOW = json.dumps({"verdict": "allow", "reason": "relevant to the goal", "confidence": 0.93, "new_args": None})
SCORE = json.dumps({"score": 0.9, "summary": "relevant to the goal", "suggested_action": None})
GOAL = "Send a friendly reminder to the QA team about Friday's release."
ARGS = {"channel": "#qa", "text": "Reminder: the release is on Friday.", "thread": 1, "dry_run": False}
HISTORY = [{"role": "user", "content": f"message {n} " + "lorem ipsum dolor sit amet " * 12} for n in range(6)]
# The caps of a run would end the measurement.
CONFIG = VerifierConfig(max_pretool_calls_per_run=10**9, max_progress_calls_per_run=10**9)


class Judge:
    def __init__(self, answer):
        self.answer = answer

    def complete(self, messages):
        return self.answer


def report(name, call):
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            call()
        least = min(least, time.process_time_ns() - began)
    print(f"{name}: {least // CALLS} ns")


print(f"shipit-agent {version('shipit-agent')}")
veto = PreToolVerifier(llm=Judge(ALLOW), config=CONFIG)
for name, history in (("veto check, no history", None), ("veto check, 6 messages", HISTORY)):
    report(name, lambda: veto.check(tool_name="slack_send", tool_args=ARGS, goal=GOAL, recent_history=history))
progress = ProgressVerifier(llm=Judge(SCORE), config=CONFIG)
report("progress check, 6 messages", lambda: progress.maybe_nudge(progress.evaluate(
    goal=GOAL, last_step_summary="called slack_search, got 3 channels", recent_history=HISTORY)))
