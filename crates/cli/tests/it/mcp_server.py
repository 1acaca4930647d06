"""An MCP server over stdio, by hand: what its tools do is what the tests need."""
import json, os, sys

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
LOG = os.environ["MCP_LOG"]
waiting = []

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
TOOLS = [
    {"name": "echo", "title": "Echo", "description": "says it", "inputSchema": TEXT,
     "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "x-unknown": [3, 2, 1]},
    {"name": "delete", "description": "deletes", "inputSchema": {"type": "object"}},
    {"name": "publish", "description": "publishes", "inputSchema": {"type": "object"}},
    {"name": "run", "description": "runs", "inputSchema": {"type": "object"}},
    {"name": "write_file", "description": "writes", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "waits for release", "inputSchema": {"type": "object"}},
    {"name": "release", "description": "answers who waits", "inputSchema": {"type": "object"}},
    {"name": "big", "description": "is long", "inputSchema": {"type": "object"}},
    {"name": "stray", "description": "prints", "inputSchema": {"type": "object"}},
    {"name": "flood", "description": "prints on", "inputSchema": {"type": "object"}},
    {"name": "endless", "description": "one line", "inputSchema": {"type": "object"}},
    {"name": "answer", "description": "answers with this result", "inputSchema": {"type": "object"}},
    {"name": "unasked", "description": "answers more than it was asked", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "dies", "inputSchema": {"type": "object"}},
]

if MODE == "any":
    TOOLS += [{"name": name, "description": "does something to files", "inputSchema": {"type": "object"}} for name in (
        "apply_diff", "compare", "create_pull_request", "get_screenshot", "git_add", "git_log", "helper", "open_file",
        "run_tests", "set_breakpoint", "text_editor", "tree_clear",
        "copy_file", "delete_directory", "delete_file", "edit_files", "fs_put", "list_directory", "move_file", "read_file",
        "rename", "settle", "write_files",
        "cargo_test", "execute_code", "ipython", "lint_file", "mypy", "rg")]


def log(line):
    with open(LOG, "a") as out:
        out.write(line + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def says(id, text):
    send({"id": id, "result": {"content": [{"type": "text", "text": text}], "isError": False}})


def call(id, name, args):
    log(f"call {name}")
    if name == "wait":
        waiting.append(id)
        send({"method": "notifications/message", "params": {"level": "info", "data": "waits"}})
    elif name == "release":
        says(id, "released")
        while waiting:
            says(waiting.pop(), "waited")
    elif name == "big":
        says(id, "x" * args["bytes"])
    elif name == "stray":
        sys.stdout.write("DEBUG: not \x1b[31mJSON\n[]\n\n")
        says(id, "after")
    elif name == "flood":
        while True:
            sys.stdout.write("y\n")
    elif name == "endless":
        while True:
            sys.stdout.write("y" * 65536)
    elif name == "answer":
        send({"id": id, "result": args})
    elif name == "unasked":
        for more in ({"id": "nobody"}, {"id": id + 1}, {"id": None}, {"id": id, "method": "x"}):
            send({**more, "result": {"content": [{"type": "text", "text": "unasked"}]}})
        says(id, "asked")
    elif name == "die":
        os._exit(3)
    elif args.get("fail"):
        send({"id": id, "error": {"code": -32007, "message": args["fail"], "data": {"of": args["fail"]}}})
    elif name == "echo":
        says(id, args["text"])
    else:
        says(id, "done")


for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if MODE == "mute":
        continue
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "files", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": TOOLS, "_meta": {"of": "the server"}}})
    elif method == "tools/call":
        call(id, params["name"], params.get("arguments", {}))
    elif method == "notifications/cancelled":
        log(f"cancelled {json.dumps(params['requestId'])}")
        send({"method": "notifications/message", "params": {"level": "info", "data": "cancelled"}})
    elif method == "ask/back":
        send({"id": "from-server", "method": "roots/list"})
        send({"id": id, "result": {}})
    elif method is None:
        log(f"answer {json.dumps(message.get('result'))}")
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
log("end")
