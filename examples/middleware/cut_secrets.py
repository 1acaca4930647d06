"""A layer of middleware for after_tool: takes secrets out of what a tool said, and the middle out of what is
too long."""

import json
import re
import sys

LONGEST = 20_000
SECRET = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|(?i:((?:password|secret|token)\s*[=:]\s*))[^\s\"',]+"
)

question = json.load(sys.stdin)
text = SECRET.sub(lambda found: (found.group(1) or "") + "[cut]", question["text"])
if len(text) > LONGEST:
    head, tail = text[: LONGEST * 3 // 4], text[-LONGEST // 4 :]
    text = f"{head}\n[{len(text) - LONGEST} characters cut]\n{tail}"

if text == question["text"]:
    answer = {"answer": "pass"}
else:
    answer = {"answer": "rewrite", "text": text}
json.dump(answer, sys.stdout)
