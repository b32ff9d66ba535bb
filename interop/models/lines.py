"""Speaks JSON lines with Hotseat."""
import json
import sys


def converse(answer):
    """Answers each message with `answer(text)`."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "message":
            print(json.dumps({"type": "text", "text": answer(message["text"])}))
            print(json.dumps({"type": "done"}), flush=True)
