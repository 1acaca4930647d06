"""A layer of middleware for after_tool: takes secrets out of what a tool said, and the middle out of what is
too long."""

import json
import re
import sys

LONGEST = 20_000
SECRET = re.compile(
    r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,}|(?i:((?:password|secret|token)\"?\s*[=:]\s*\"?))[^\s\"',]+"
)


def cut(text):
    return SECRET.sub(lambda found: (found.group(1) or "") + "[cut]", text)


question = json.load(sys.stdin)
text = cut(question["text"])
if len(text) > LONGEST:
    head, tail = text[: LONGEST * 3 // 4], text[-LONGEST // 4 :]
    text = f"{head}\n[{len(text) - LONGEST} characters cut]\n{tail}"

# A secret can also be where no model looks; the text takes the place of all of that.
whole = json.dumps(question["result"])
if text == question["text"] and cut(whole) == whole:
    answer = {"answer": "pass"}
else:
    answer = {"answer": "rewrite", "text": text}
json.dump(answer, sys.stdout)
