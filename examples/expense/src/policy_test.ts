// Hooks of a case, and a judging function.

interface Policy {
  limits: Record<string, number>;
}
interface Call {
  name: string;
  result?: { status: string; type: string; amount: number; limit?: number };
}

/** Looks up the limit for meals; the case requests one dollar more. */
export function Before() {
  const policy: Policy = JSON.parse(files.read("policy.json"));
  return { AMOUNT: `$${policy.limits.meal + 1}`, data: policy };
}

export function After(_ctx: unknown, testCase: { id: string }, result: { status: string }, policy: Policy) {
  console.log(testCase.id, result.status, "with a limit of", policy.limits.meal);
}

/** Checks that no draft exceeds the limit, here and in another conversation with the assistant. */
export function withinPolicy(_output: string, _input: string, _expected: unknown, context: { tool_calls: Call[] }) {
  const policy: Policy = JSON.parse(files.read("policy.json"));
  const again = Process("agents.expense.Stream", `A meal for $${policy.limits.meal}`) as { tool_calls: Call[] };
  const drafts = [...context.tool_calls, ...again.tool_calls].map((call) => call.result).filter((result) => result?.status === "draft");
  const over = drafts.find((draft) => draft!.amount > policy.limits[draft!.type]!);
  return { pass: over === undefined && drafts.length === 1, message: `${drafts.length} draft, ${over ? "one" : "none"} over the limit` };
}
