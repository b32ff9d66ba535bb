"""Serves an agent over HTTP: each message names its conversation, its MCP server and its model."""
import asyncio
import json
import os
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(answer):
    """Answers messages with `await answer(text, history, bank, model)`, which returns a text and the new history."""
    histories = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200, {})

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            conversation = message["conversation"]
            history = histories.setdefault(conversation, [])
            try:
                text, histories[conversation] = asyncio.run(
                    answer(message["text"], history, self.headers["X-Bank"], self.headers["X-Model"])
                )
            except BaseException as error:
                traceback.print_exc()
                return self.reply(500, {"error": repr(error)})
            self.reply(200, {"reply": text})

        def reply(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
