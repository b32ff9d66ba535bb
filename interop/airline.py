"""Location of the airline conversations, and the tools they use."""
import os
from pathlib import Path

WRITES = [
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
]


def data_file():
    """Path of the data, or the reason why it is missing."""
    named = os.environ.get("HOTSEAT_TRANSCRIPTS")
    if named:
        path = Path(named)
        return (path, None) if path.is_file() else (None, f"HOTSEAT_TRANSCRIPTS: no such file: {named}")
    checkout = Path(__file__).resolve().parent.parent
    path = checkout.parent / "shared/data/tau-bench-airline/gpt-4o-trials-0-1.json"
    return (path, None) if path.is_file() else (None, None)
