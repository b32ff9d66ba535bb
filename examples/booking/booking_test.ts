// Three conversations in TypeScript (simulated, scripted, and scripted with topics) and a set of scenarios. booking.test.yaml
// and booking_test.rs declare the same tests and produce the same recordings.
import {
  agent, conversation, criterion, describe, evaluate, expect, expectConversationTo, gte, it, scenarioSet, simulator, topic, user,
} from "hotseat";

describe("Event Booking Agent", () => {
  criterion("friendly", "The agent's response should be friendly");
  criterion("helpful", "The agent should help achieve the user's goal");

  simulator({
    use: "connectors:organiser",
    role: "Corporate event planner",
    maxTurns: 15,
    stopWhen: (_turn, conversation) => conversation.hasToolCall("book_venue"),
  });

  topic("greeting", {
    characteristic: "Initial contact phase",
    agentIntent: "Welcome the user and establish rapport",
    evaluate: { satisfy: "friendly" },
    forbidClaims: ["venues", "pricing"],
  });

  topic("gathering_details", {
    characteristic: "Collecting event requirements",
    agentIntent: "Collect sufficient information for venue search",
    evaluate: { satisfy: ["friendly", "helpful"] },
    forbidClaims: ["venues"],
  });

  topic("presenting_results", {
    characteristic: "Presenting venue options",
    triggers: [{ onToolCall: "search_suppliers" }],
    agentIntent: "Help user understand options using search results",
    evaluate: [{ satisfy: "helpful" }, { grounded: ["venues", "pricing"], fromTools: ["search_suppliers"] }],
    expect: { toolCall: "search_suppliers" },
  });

  it("handles standard venue search", () => {
    expectConversationTo({
      greeting: "gathering_details",
      gathering_details: "presenting_results",
      presenting_results: "gathering_details",
    });

    user.simulate({ goal: "Find a venue for a corporate workshop with 50 attendees in Stuttgart" });

    expect(conversation.turns.length).toBeGreaterThanOrEqual(3);
    expect(conversation.topicHistory).toContain("presenting_results");
  });
});

describe("Room Booking Agent", () => {
  criterion("friendly", "The agent's response should be friendly");
  criterion("acknowledges_change", "Acknowledges modification requests gracefully");

  it("handles booking with modification", () => {
    user.says("Hi, I need to book a meeting room");

    evaluate(agent).toSatisfy("friendly");
    evaluate(agent).toHaveIntent("gather_requirements");
    expect(agent).not.toCallTool("book_room");
    expect(agent).not.toClaim("availability");

    user.says("The Blue Room for tomorrow at 2pm, 10 people");

    expect(agent).toCallTool("check_availability", { room: "Blue Room", capacity: 10 });
    evaluate(agent).toBeGroundedIn(["room_catalog", "calendar"]);

    user.says("Actually, make it 3pm instead");

    evaluate(agent).toSatisfy("acknowledges_change");
    expect(agent).toCallTool("check_availability");
    evaluate(agent).toMatch(/3[:\s]?00\s*pm|15[:\s]?00/i);

    user.says("Yes, please book it");

    expect(agent).toCallTool("book_room");
    evaluate(agent).toBeGroundedIn("booking_confirmation");
    evaluate(agent).toSatisfy("friendly");

    expect(conversation.turns.length).toBe(4);
    expect(conversation.allToolCalls.map((call) => call.name)).toContain("check_availability", "book_room");
  });
});

describe("Room Booking Agent (topics)", () => {
  criterion("friendly", "The agent's response should be friendly");

  topic("greeting", { characteristic: "Initial contact and welcome" });
  topic("gathering_details", { characteristic: "Collecting booking requirements" });
  topic("confirming", { characteristic: "Confirming and finalizing the booking" });

  it("progresses through booking flow", () => {
    expectConversationTo({ greeting: "gathering_details", gathering_details: "confirming", confirming: null });

    user.says("Hello!");

    expect(agent).toBeInTopic("greeting");
    evaluate(agent).toSatisfy("friendly");

    user.says("I need the Blue Room for 10 people tomorrow");

    expect(agent).toBeInTopic("gathering_details");
    expect(conversation.topicHistory).toEqual(["greeting", "gathering_details"]);
    expect(agent).toCallTool("check_availability");

    user.says("Yes, book it");

    expect(agent).toBeInTopic("confirming");
    expect(agent).toCallTool("book_room");
  });
});

describe("Venue Agent", () => {
  simulator({
    use: "connectors:organiser",
    maxTurns: 6,
    stopWhen: (turn) => turn.hasToolCall("search_suppliers", { attendees: gte(10) }),
  });

  scenarioSet("venues", "venues.json", (scenario) => {
    it(`finds a venue for ${scenario.name}`, () => {
      user.simulate({
        goal: scenario.goal,
        context: scenario.context,
        personality: scenario.personality,
        shouldNot: ["engage in small talk"],
      });

      expect(conversation).toHold(scenario.verification?.assert);
      evaluate(conversation).toSatisfy("helpful");
    });
  });
});
