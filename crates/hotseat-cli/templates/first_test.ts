// Tests in TypeScript. Run them with `hotseat test`; editors know `hotseat` from hotseat-editor/hotseat.d.ts.
import { agent, conversation, describe, evaluate, expect, it, user } from "hotseat";

describe("my agent", () => {
  it("answers a greeting", () => {
    const response = user.says("Hello, what can you do?");

    expect(response.isEmpty).toBe(false);
    // `evaluate` never affects the verdict; `expect` does.
    evaluate(agent).toMatch(/help|can/i);
    expect(conversation.turns.length).toBe(1);
  });
});
