// Holds conversations between the official AG-UI client and `hotseat serve`. The client validates every event
// and the event sequence; this script checks the resulting state.
//
//     node talk.mjs URL
//
// Prints one line per conversation, then `PASSED FAILED`, two numbers.
import assert from "node:assert/strict";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { EventType } from "@ag-ui/core";
import { EventSchemas } from "@ag-ui/core/schemas";

const url = process.argv[2];

// The client warns about unknown members and drops them; none may be needed.
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = (...words) => warnings.push(words.join(" "));

const PICK_COLOR = {
  name: "pick_color",
  description: "Lets the user pick a color",
  parameters: { type: "object", properties: { for: { type: "string" } }, required: ["for"] },
};

let threads = 0;
let messages = 0;

/** A conversation: the official client, and every event that it has seen. */
class Talk {
  constructor(options = {}) {
    this.agent = new HttpAgent({ url, threadId: `js-${process.pid}-${++threads}`, ...options });
    this.events = [];
  }

  async say(content, parameters) {
    this.agent.addMessage({ id: `user-${++messages}`, role: "user", content });
    return await this.run(parameters);
  }

  answer(toolCallId, content, error) {
    const message = { id: `tool-${++messages}`, role: "tool", toolCallId, content };
    this.agent.addMessage(error === undefined ? message : { ...message, error });
  }

  async run(parameters) {
    this.events = [];
    const seen = this.events;
    const { newMessages } = await this.agent.runAgent(parameters, {
      onEvent: ({ event }) => {
        EventSchemas.parse(event);
        seen.push(event);
      },
    });
    return newMessages;
  }

  of(type) {
    return this.events.filter((event) => event.type === type);
  }

  /** What the agent said last. */
  get last() {
    return this.agent.messages.filter((message) => message.role === "assistant" && message.content).at(-1).content;
  }

  get roles() {
    return this.agent.messages.map((message) => message.role).join(" ");
  }

  get outcome() {
    return this.of(EventType.RUN_FINISHED).at(-1).outcome;
  }
}

const talks = {
  async "a conversation of several turns"() {
    const talk = new Talk();
    await talk.say("I am Ada");
    assert.equal(talk.last, "Hello Ada.");
    await talk.say("say it again");
    assert.equal(talk.last, 'Ünïcödé 🦀 "quoted" \\ <b>\nand a second line.');
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
    assert.equal(talk.roles, "user assistant user assistant user assistant");
    assert.equal(talk.of(EventType.RUN_STARTED)[0].protocolVersion, "1.0");
    assert.ok(talk.of(EventType.TEXT_MESSAGE_CONTENT).length >= 1);
    assert.deepEqual(talk.outcome, { type: "success" });
  },

  async "text arrives in pieces"() {
    const talk = new Talk();
    await talk.say("order o-9");
    assert.ok(talk.of(EventType.TEXT_MESSAGE_CONTENT).length > 2, "more than one piece a message");
  },

  async "the agent's tools, and the state that it shares"() {
    const talk = new Talk();
    await talk.say("order o-9");
    assert.equal(talk.last, "It costs 42.5.");
    assert.equal(talk.roles, "user assistant tool assistant");
    const [, asked, result] = talk.agent.messages;
    assert.equal(asked.content, "Let me look.");
    assert.equal(asked.toolCalls.length, 1);
    assert.deepEqual(JSON.parse(asked.toolCalls[0].function.arguments), { order: "o-9" });
    assert.equal(result.toolCallId, asked.toolCalls[0].id);
    assert.deepEqual(JSON.parse(result.content), { order: "o-9", total: 42.5 });
    assert.deepEqual(talk.agent.state, { order: { order: "o-9", total: 42.5 } });
    await talk.say("which order was it?");
    assert.equal(talk.last, "We spoke of o-9.");
    await talk.say("order o-8");
    assert.equal(talk.agent.state.order.order, "o-8");
  },

  async "the state of the client"() {
    const talk = new Talk({ initialState: { order: { order: "o-9" } } });
    await talk.say("which order was it?");
    assert.equal(talk.last, "We spoke of o-9.");
    assert.deepEqual(talk.agent.state, { order: { order: "o-9" } });
  },

  async "a tool of the client"() {
    const talk = new Talk();
    const tools = [PICK_COLOR];
    await talk.say("color please", { tools });
    const call = talk.agent.messages.at(-1).toolCalls[0];
    assert.equal(call.function.name, "pick_color");
    assert.deepEqual(talk.outcome, { type: "success", pendingToolCallIds: [call.id] });
    talk.answer(call.id, "red");
    await talk.run({ tools });
    assert.equal(talk.last, "Your color is red.");
    assert.equal(talk.roles, "user assistant tool assistant");
    await talk.say("color again", { tools });
    talk.answer(talk.agent.messages.at(-1).toolCalls[0].id, "", "the palette is empty");
    await talk.run({ tools });
    assert.equal(talk.last, "No color: the palette is empty");
  },

  async "two tools of the client at once"() {
    const talk = new Talk();
    const tools = [PICK_COLOR];
    await talk.say("two colors please", { tools });
    const calls = talk.agent.messages.at(-1).toolCalls;
    assert.deepEqual(talk.outcome.pendingToolCallIds, calls.map((call) => call.id));
    for (const call of calls) talk.answer(call.id, `blue for ${JSON.parse(call.function.arguments).for}`);
    await talk.run({ tools });
    assert.match(talk.last, /^Your color is blue for (walls|doors)\.$/);
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
  },

  async "a person approves a call"() {
    const talk = new Talk();
    await talk.say("refund 10");
    const [interrupt] = talk.agent.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_call");
    assert.equal(interrupt.message, "Refund 10 euros?");
    const call = talk.agent.messages.at(-1).toolCalls[0];
    assert.equal(interrupt.toolCallId, call.id);
    const resume = buildResumeArray(talk.agent.pendingInterrupts, {
      [interrupt.id]: { status: "resolved", payload: { approved: true } },
    });
    await talk.run({ resume });
    assert.equal(talk.last, "You get 10 back.");
    assert.equal(talk.roles, "user assistant tool assistant");
    assert.deepEqual(talk.agent.pendingInterrupts, []);
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
  },

  async "a person changes a call, and declines two"() {
    const talk = new Talk();
    const answers = [
      [{ status: "resolved", payload: { approved: true, editedArgs: { amount: 3 } } }, /^You get 3 back\.$/],
      [{ status: "resolved", payload: { approved: false, reason: "too much" } }, /no refund: .*too much/],
      [{ status: "cancelled" }, /no refund: /],
    ];
    for (const [answer, says] of answers) {
      await talk.say("refund 10");
      const id = talk.agent.pendingInterrupts[0].id;
      await talk.run({ resume: buildResumeArray(talk.agent.pendingInterrupts, { [id]: answer }) });
      assert.match(talk.last, says);
    }
  },

  async "what the model thinks"() {
    const talk = new Talk();
    await talk.say("think about it");
    const thought = talk.agent.messages.find((message) => message.role === "reasoning");
    assert.equal(thought.content, "Let me think about it.");
    assert.equal(talk.last, "It is done.");
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
  },

  async "work beside the conversation"() {
    const talk = new Talk();
    await talk.say("research it");
    assert.equal(talk.roles, "user assistant tool assistant");
    assert.equal(talk.last, "It is 7.");
    const result = talk.agent.messages.find((message) => message.role === "tool");
    assert.deepEqual(JSON.parse(result.content), { found: 7 });
  },

  async "an agent that works apart, and one that joins"() {
    const talk = new Talk();
    await talk.say("ask the expert");
    assert.equal(talk.last, "The expert says: I know.");
    assert.equal(talk.of(EventType.SUBAGENT_STARTED)[0].name, "expert");
    assert.equal(talk.of(EventType.SUBAGENT_FINISHED).length, 1);
    assert.ok(!talk.agent.messages.some((message) => message.content === "I know."));
    await talk.say("call in somebody");
    const adviser = talk.agent.messages.find((message) => message.content === "I advise it.");
    assert.equal(adviser.subagentRunId, talk.of(EventType.SUBAGENT_STARTED)[0].subagentRunId);
    assert.equal(talk.last, "You have heard it.");
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
  },

  async "instructions and context of the client"() {
    const talk = new Talk({ initialMessages: [{ id: "s", role: "system", content: "Be brief" }] });
    await talk.say("who am I?", { context: [{ description: "the user's name", value: "Ada" }] });
    assert.equal(talk.last, "Ada, briefly.");
  },

  async "a run that fails, and the same thread after it"() {
    const talk = new Talk();
    await talk.say("I am Ada");
    await talk.say("crash");
    const [error] = talk.of(EventType.RUN_ERROR);
    assert.equal(error.code, "LLM_FAILED");
    await talk.say("anything else");
    assert.equal(talk.last, "Yes.");
  },

  async "a history that was changed is refused"() {
    const talk = new Talk();
    await talk.say("I am Ada");
    talk.agent.messages[0].content = "I am Bob";
    await assert.rejects(talk.say("anything else"), /409/);
    assert.ok(warnings.pop().includes("409"), "the client says so itself");
  },
};

let passed = 0;
let failed = 0;
for (const [name, hold] of Object.entries(talks)) {
  try {
    await hold();
    assert.deepEqual(warnings, [], "the client warns of something");
    passed += 1;
    console.log(`    ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`    FAIL ${name}: ${error.stack ?? error}`);
  }
  warnings.length = 0;
}
console.log(`${passed} ${failed}`);
