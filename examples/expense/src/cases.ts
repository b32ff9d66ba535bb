// Generates cases: `hotseat test -n expense -i "scripts:cases.amounts?count=4"`.

import policy from "../policy.json";

/** Meals on both sides of the limit, each a little further from it. */
export function amounts(told: { count: number }) {
  const limit = policy.limits.meal;
  const steps = Array.from({ length: told.count }, (_, n) => limit + (n % 2 === 0 ? n : -n));
  return {
    cases: steps.map((amount) => ({
      id: `meal-${amount}`,
      input: `A meal for $${amount}`,
      assertions: [
        { type: "tool_called", name: "create_expense", arguments: { amount } },
        { type: "contains", value: amount > limit ? "over the limit" : "Please confirm" },
      ],
    })),
  };
}
