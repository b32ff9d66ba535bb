// Checks the types of `hotseat`. `tsc` reports each line marked `@ts-expect-error` that compiles.
import {
  afterEach, agent, anything, beforeEach, between, conversation, criterion, describe, evaluate, expect, expectConversationTo, gt, gte,
  it, lt, lte, oneOf, scenarioSet, simulator, test, topic, user,
} from "hotseat";
import type { Turn } from "hotseat";

const friendly = criterion("friendly", "The agent's response should be friendly");
criterion("careful", { description: "careful", goodExamples: [{ text: "a", explanation: "b" }] });
criterion("by_code", { match: (conversation) => conversation.calledTool("book_room") > 0 });
criterion("by_messages", { matchMessages: (messages) => messages.some((message) => message.isAgent) });
// @ts-expect-error an example needs an explanation
criterion("wrong", { goodExamples: [{ text: "a" }] });

simulator({ role: "planner", maxTurns: 15, stopWhen: (_turn, conversation) => conversation.hasToolCall("book_venue") });
const greeting = topic("greeting", { characteristic: "Initial contact", evaluate: { satisfy: friendly }, forbidClaims: ["venues"] });
topic("results", { triggers: [{ onToolCall: "search" }, { onResponseMatch: /found/i }, { onCondition: (turn) => turn.number > 2 }] });
// @ts-expect-error a number is not a trigger
topic("wrong", { triggers: [5] });

describe("group", { tags: ["a"] }, () => {
  it("says and asserts", { timeout: "30s", retries: 2 }, ({ scenario }) => {
    const response = user.says("hello");
    const text: string = response.text;
    user.says({ user: "again", expectError: /x/, attachments: [{ type: "image", source: "a.png" }] });
    // @ts-expect-error the user needs a message
    user.says(5);

    expect(agent).toCallTool("book_room", { room: /blue/i, capacity: gte(10), time: (value: string) => value > "a", n: between(1, 2) }, { times: 1 });
    expect(agent).not.toCallTool(["a", "b"], { a: gt(1), b: lt(2), c: lte(3), d: oneOf("x", "y"), e: anything() });
    evaluate(agent).toSatisfy("friendly", friendly, (turn: Turn) => turn.agentResponse.length < 300, ["short", (turn) => turn.number > 0]);
    // @ts-expect-error an undefined argument asserts nothing
    expect(agent).toCallTool("book_room", { room: undefined });
    const people: number = scenario!.get("verification.people");
    expect(people).toBeGreaterThan(1);
    expect(agent).toMatch(/a/, /b/);
    expect(agent).toBeGroundedIn(["venues"], { fromTools: ["search"] });
    expect(agent).not.toClaim("prices", "venues");
    expect(agent).toHaveIntent("gather_requirements", { describedAs: "asks" });
    expect(agent).toBeInTopic(greeting);
    expect(conversation).toHaveReachedTopic("results");
    expect(conversation).toSatisfy((conversation) => conversation.turnCount === 2);
    expect(conversation).toHaveAchievedGoal("booked");
    expect(agent).toHold({ type: "tool_result", tool: "search", result: { ok: true } });
    // @ts-expect-error an agent is not a value
    expect(agent).toBe(5);
    // @ts-expect-error a number calls no tools
    expect(5).toCallTool("x");

    expect(text).toContain("a");
    expect(conversation.turns.length).toBeGreaterThanOrEqual(1);
    expect(conversation.allToolCalls.map((call) => call.name)).toContain("a", "b");
    expect({ a: 1 }).toMatchObject({ a: gte(1) });
    expect(() => 1).not.toThrow(TypeError);
    // @ts-expect-error strings are compared with strings
    expect(text).toBe(5);
    expect(scenario?.goal).toBeUndefined();
  });
  // @ts-expect-error a test needs a name
  it(() => {});
  it("simulates", async () => {
    expectConversationTo({ greeting: "results", results: null, other: { next: ["greeting"], characteristic: "other", from: "any" } });
    const { reason } = user.simulate({ goal: "Find a venue", shouldNot: ["small talk"], duringTopic: { greeting: { should: ["greet"] } } });
    expect(reason).toBe("goal_reached");
    // @ts-expect-error a simulated user needs a goal
    user.simulate({ role: "planner" });
    await user.says("works as well");
  });
  scenarioSet("venues", "venues.json", (scenario) => {
    it(`handles ${scenario.name}`, () => {
      for (const service of scenario.verification?.services ?? []) expect(conversation).toHaveToolCall("add", { service });
    });
  });
});

export function TestAll(t: TestingT, ctx: Context): void {
  const answer = Process("agents.expense.Stream", ctx, [{ role: "user", content: "hi" }]);
  t.assert.Contains(answer.content, "confirm");
  const judgement = t.assert.Agent(answer.content, "workers.test.validator", { metadata: { criteria: "asks" } });
  if (!judgement.passed) t.log(judgement.reason);
  t.run("part", (t) => t.assert.Equal({ a: 1 }, { a: 1 }, "same"));
  t.assert.Match("x", /x/);
  console.log(process.env.HOME, files.list("."), fetch("http://127.0.0.1/").json());
  // @ts-expect-error unknown assertion
  t.assert.Equals(1, 1);
  t.skip("enough");
}

beforeEach(() => {});
afterEach(async () => {});
it.each([["Rome", 2], ["Oslo", 3]] as const)("books %s", (city, people, { user }) => {
  const both: [string, number] = [city, people];
  user.says(both.join());
});
it.each([["Rome", 2], ["Oslo", 3]])("looks for %s", { tags: ["a"] }, (city, people) => {
  const both: [string, number] = [city, people];
  expect(both).toEqual([expect.any(String), expect.any(Number)]);
});
test.only.each([{ city: "Rome" }])("$city", ({ city }, { agent }) => {
  expect(agent).toCallTool("look", { city: expect.stringContaining(city), all: expect.arrayContaining([1]), by: expect.objectContaining({ a: 1 }) });
  // @ts-expect-error a class is needed
  expect.any("number");
});
describe.each(["a", "b"])("group %s", (letter) => {
  it(letter.toUpperCase(), () => {});
});
// @ts-expect-error a number is not a text
it.each([1, 2])("n %s", (n: string) => {});
