"""The shop agent implemented by every server of the interoperability check.

The frameworks are real; only the language model is replaced by `decide`. No network, randomness or clock
(except for the delay of `slow_tool`).

A word in the last user message selects the behaviour of the model. The first match in this order wins:
  crash     the model raises
  history   reports the number of user messages the model received, and the first of them
  unicode   text with multibyte characters, a line break, quotes and a backslash
  frontend  calls the first tool that the client offered, then repeats its answer
  parallel  validate_cart and get_shipping_options in one model step, then text
  twice     charge_card twice in sequence, then text
  decline   charge_card with a declined card, then text
  pay       charge_card, approved, then text
  toolfail  fail_tool, which raises
  delete    delete_order, then text
  refund    refund_order, which needs approval, then text
  remember  remember, which changes the shared state if the framework supports it, then text
  slow      slow_tool for 800 ms, then text
  shipping  calculate_total, then text
  checkout  validate_cart, then get_shipping_options with nested arguments, then text
  anything else is echoed
"""
import time


def validate_cart(cart_id: str) -> dict:
    """Validate the cart."""
    return {"ok": True, "cart_id": cart_id, "items": 2}


def get_shipping_options(country: str, cart: dict) -> dict:
    """List the shipping options for a cart."""
    return {"options": [{"id": "standard", "price": 4.5}, {"id": "express", "price": 12.0}], "country": country}


def calculate_total(shipping: str) -> dict:
    """Compute the total of the order."""
    return {"total": 42.5, "currency": "EUR", "shipping": shipping}


def charge_card(amount: float, currency: str, token: str) -> dict:
    """Charge the card."""
    if token == "tok_declined":
        return {"status": "declined", "reason": "insufficient funds"}
    return {"status": "approved", "charge_id": "ch_001", "amount": amount, "currency": currency}


def delete_order(order_id: str) -> str:
    """Delete an order."""
    return f"order {order_id} deleted"


def slow_tool(ms: int) -> str:
    """Wait for some milliseconds."""
    time.sleep(ms / 1000)
    return "slept"


def fail_tool(reason: str) -> str:
    """Always raises."""
    raise RuntimeError(f"tool exploded: {reason}")


def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order, once a person has approved it."""
    return {"refunded": amount, "order_id": order_id}


def remember(key: str, value: str) -> str:
    """Store a value in the shared state."""
    return f"stored {key}"


TOOLS = [
    validate_cart,
    get_shipping_options,
    calculate_total,
    charge_card,
    delete_order,
    slow_tool,
    fail_tool,
    refund_order,
    remember,
]
TOOL_NAMES = {tool.__name__ for tool in TOOLS}

CART = {"id": "c-1", "items": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}], "address": {"city": "Paris"}}


def charge(token):
    return ("charge_card", {"amount": 42.5, "currency": "EUR", "token": token})


def decide(user_texts, results, client_tools=()):
    """Plays one step of the model.

    `user_texts`: every user message so far. `results`: (tool name, content) of the tool results that came after the
    last user message. `client_tools`: the names of the tools that the client offered.
    Returns {"calls": [(name, arguments), ...]}, {"text": ...} or {"raise": ...}.
    """
    text = user_texts[-1] if user_texts else ""
    word = text.lower()
    done = len(results)

    def steps(calls, closing):
        """One call per step until all of them have results, then the closing text."""
        return {"calls": [calls[done]]} if done < len(calls) else {"text": closing(results)}

    if "crash" in word:
        return {"raise": "model backend exploded"}
    if "history" in word:
        return {"text": f"I saw {len(user_texts)} user message(s); the first was: {user_texts[0]!r}"}
    if "unicode" in word:
        return {"text": 'Grüße — 你好 🌍\nsecond line: "quoted" \\ backslash'}
    if "frontend" in word:
        if not client_tools:
            return {"text": "No client tools were supplied."}
        call = (client_tools[0], {"action": "confirm payment of 42.50 EUR"})
        return steps([call], lambda r: f"Client tool answered: {r[-1][1]}")
    if "parallel" in word:
        if done == 0:
            both = [("validate_cart", {"cart_id": "c-1"}), ("get_shipping_options", {"country": "FR", "cart": CART})]
            return {"calls": both}
        return {"text": "Both checks done."}
    if "twice" in word:
        return steps([charge("tok_1"), charge("tok_2")], lambda r: "Charged twice.")
    if "decline" in word:
        return steps([charge("tok_declined")], lambda r: f"Payment failed: {r[0][1]}")
    if "pay" in word:
        return steps([charge("tok_test")], lambda r: "Payment approved. Charge id ch_001.")
    if "toolfail" in word:
        return steps([("fail_tool", {"reason": "on purpose"})], lambda r: f"The tool failed: {r[0][1]}")
    if "delete" in word:
        return steps([("delete_order", {"order_id": "o-9"})], lambda r: "Order deleted.")
    if "refund" in word:
        return steps([("refund_order", {"order_id": "o-9", "amount": 42.5})], lambda r: f"Refund outcome: {r[0][1]}")
    if "remember" in word:
        return steps([("remember", {"key": "color", "value": "blue"})], lambda r: "Remembered.")
    if "slow" in word:
        return steps([("slow_tool", {"ms": 800})], lambda r: "Done waiting.")
    if "shipping" in word:
        return steps([("calculate_total", {"shipping": "standard"})], lambda r: "Your total is 42.50 EUR.")
    if "checkout" in word:
        calls = [("validate_cart", {"cart_id": "c-1"}), ("get_shipping_options", {"country": "FR", "cart": CART})]
        return steps(calls, lambda r: "Cart is valid. Shipping options: standard, express.")
    return {"text": f"You said: {text}"}


def pieces(text, length=12):
    """Splits a text into small pieces, like a streaming model."""
    return [text[i : i + length] for i in range(0, len(text), length)] or [""]


def halves(arguments):
    """Splits the JSON arguments of a call into two pieces at an arbitrary position."""
    middle = len(arguments) // 2
    return arguments[:middle], arguments[middle:]
