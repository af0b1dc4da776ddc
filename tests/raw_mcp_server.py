"""An MCP server by hand, over its standard streams: it says exactly what its arguments and its tools want, right or wrong.

``raw_mcp_server.py [--name NAME] [--tools NAME,...] [--endless] [--once FILE] [--slow-end]``
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ARGUMENTS = sys.argv[1:]


def option(name: str, default: str = "") -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else default


TOOLS = option("--tools", "echo,pid,env,die,noise,nothing,structured,wrong,refuse,fail,parts,hang,mute").split(",")

ANSWERS: dict[str, dict[str, Any]] = {
    "nothing": {"content": []},
    "structured": {"content": [], "structuredContent": {"b": [1, None], "a": "é"}},
    "wrong": {"content": 3},
    "fail": {"content": [], "isError": True},
    "parts": {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "audio", "data": "AAECAw==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAEC", "mimeType": "application/x"}},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
            {"type": "resource_link", "uri": "file:///b.txt", "name": "b"},
            {"type": "text", "text": "two"},
        ],
        "structuredContent": {"not": "shown"},
    },
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}]}


def call(number: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "pid":
            send({"id": number, "result": text(os.getpid())})
        case "env":
            send({"id": number, "result": text(json.dumps(dict(os.environ)))})
        case "die":
            sys.stderr.write("Starting\nfatal: asked to die\n")
            sys.stderr.flush()
            os._exit(int(arguments.get("code", 3)))
        case "noise":
            sys.stdout.write("this is no JSON\n[]\n")
            send({"id": number, "result": text("after the noise")})
        case "refuse":
            send({"id": number, "error": {"code": -32000, "message": "busy just now"}})
        case "hang":
            Path(arguments["file"]).touch()
        case "mute":
            os.close(1)
        case _ if name in ANSWERS:
            send({"id": number, "result": ANSWERS[name]})
        case _ if name in TOOLS:
            send({"id": number, "result": text(f"{name} {json.dumps(arguments)}")})
        case _:
            send({"id": number, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def answer(method: str, number: Any, parameters: dict[str, Any]) -> None:
    match method:
        case "initialize":
            about = {"name": option("--name", "raw"), "version": "1"}
            told = {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
            send({"id": number, "result": told})
        case "tools/list":
            schema = {"type": "object", "properties": {"code": {"type": "integer"}}}
            listed = [{"name": name, "description": f"To {name}.", "inputSchema": schema} for name in TOOLS]
            more = {"nextCursor": "more"} if "--endless" in ARGUMENTS else {}
            send({"id": number, "result": {"tools": listed, **more}})
        case "tools/call":
            call(number, parameters["name"], parameters.get("arguments", {}))
        case _:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if once := option("--once"):
        if Path(once).exists():
            sys.exit("fatal: it can be started but once")
        Path(once).touch()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(message["method"], message["id"], message.get("params", {}))
    if "--slow-end" in ARGUMENTS:
        time.sleep(60)


if __name__ == "__main__":
    main()
