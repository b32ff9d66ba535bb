/**
 * What tests in TypeScript import from `hotseat`, and what test functions are given. Nothing of it has to be awaited:
 * whatever takes time blocks the test until it is there. `await` in front of it does no harm.
 *
 * Written by `hotseat init --typescript`, which brings it up to date.
 */
declare module "hotseat" {
  /** Anything that JSON can hold. */
  export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

  /** A word by which a criterion or a topic is called. */
  export interface Named {
    readonly name: string;
  }

  // ---- tests ---------------------------------------------------------------------------------------------------------

  /** What may be said of a test, or of all tests of a group: what a case file says of a case. */
  export interface Options {
    /** `true`, or the reason, to leave it out of runs. */
    skip?: boolean | string;
    /** Words by which tests are grouped. Those of groups hold for all their tests. */
    tags?: string[];
    /** How long all turns together may take: `30s`, `1m30s`. */
    timeout?: string;
    /** How often it is tried again when it fails. */
    retries?: number;
    /** Anything else that reports hold of it. */
    metadata?: { [key: string]: Json };
    /** Which of the agents of the project file is tested, by its name. The innermost one counts. */
    agent?: string;
    /** On whose behalf the agent is spoken to. */
    user?: string;
    /** The team of the user. */
    team?: string;
    /** What the agent is told with every turn. */
    options?: { [key: string]: Json };
    /** Who judges, and how: what an inner group or the test says comes on top. */
    judge?: string | { [key: string]: Json };
    /** What is asserted of the whole conversation, as in a case file. */
    assert?: Assertion | Assertion[];
    /** What is asserted of every turn, as in a case file. */
    turnAssert?: Assertion | Assertion[];
    /** Any other key of a case; `maxTurns` is `max_turns`. */
    [key: string]: unknown;
  }

  /** What the function of a test is given; the same can be imported. */
  export interface TestContext {
    user: User;
    agent: Agent;
    conversation: Conversation;
    /** The scenario that the test was declared for. */
    scenario?: Scenario;
    /** On whose behalf the agent is spoken to. */
    ctx: CallContext;
  }

  /** The function of a test. */
  export type TestBody = (context: TestContext) => void | Promise<void>;

  interface Describe {
    (name: string, body: () => void): void;
    (name: string, options: Options, body: () => void): void;
  }
  interface It {
    (name: string, body: TestBody): void;
    (name: string, options: Options, body: TestBody): void;
  }

  /** A group of tests. What it declares holds for all tests in it, and for the groups in it. */
  export const describe: Describe & {
    /** Of this file, only the tests of groups and tests marked so run. */
    only: Describe;
    /** The tests of the group are left out. */
    skip: Describe;
  };
  /** The same as `describe`. */
  export const context: typeof describe;
  /** A test: one conversation, and what is asserted of it. */
  export const it: It & {
    /** Of this file, only tests and groups marked so run; test functions do not. */
    only: It;
    /** The test is left out. */
    skip: It;
  };
  /** Runs before each test of the group and, in the file itself, before each test function, those of outer groups first. */
  export function before(work: () => void | Promise<void>): void;
  /**
   * Runs after each test of the group, whatever came of it, those of inner groups first; but not after one that has used up
   * its time or memory.
   */
  export function after(work: () => void | Promise<void>): void;

  // ---- what is declared ------------------------------------------------------------------------------------------------

  /** An example of what an agent says, and why it is one. */
  export interface Example {
    text: string;
    explanation: string;
  }

  /** What is said of a criterion beside its description. */
  export interface CriterionDetails {
    /** What has to be so, where it is not said before. */
    description?: string;
    /** Replies that satisfy it. */
    goodExamples?: Example[];
    /** Replies that do not. */
    badExamples?: Example[];
    /** Replies of which it is not clear, and what they are taken for. */
    edgeCases?: (Example & { verdict: boolean })[];
    /** Decides in place of a judge: something true is satisfied. */
    match?: (conversation: Conversation) => unknown;
    /** The same, given the messages of what is judged. */
    matchMessages?: (messages: Message[]) => unknown;
  }

  /** A criterion by which what the agent says is judged. One of the same name in an inner group replaces it there. */
  export function criterion(name: string, description: string, details?: CriterionDetails): Named;
  export function criterion(name: string, details: CriterionDetails): Named;

  /** What is known of a simulated user. */
  export interface Brief {
    /** Who the user is. */
    role?: string;
    /** How the user is. Texts replace those of outer groups, lists add to them. */
    personality?: string | readonly string[] | null;
    /** What the user knows. */
    context?: string | readonly string[];
    /** What the user should do. */
    should?: string[];
    /** What the user should not do. */
    shouldNot?: string[];
    /** What the user does not say, for it is not so. */
    neverSays?: RegExp | string | (RegExp | string)[];
    /** Who simulates: `agents:ID`, `connectors:NAME`, `scripts:path.name`. Default: `simulator` of the project file. */
    use?: string;
    /** How many turns the user may take. Default: 15. */
    maxTurns?: number;
    /** The conversation is over when this returns something true; asked after each turn. */
    stopWhen?: (turn: Turn, conversation: Conversation) => unknown;
    /** What holds while the conversation is in a topic. */
    duringTopic?: { [topic: string]: Brief };
  }

  /** What is known of the simulated users of a group. */
  export function simulator(brief: Brief): void;

  /** What puts a turn into a topic without asking a judge. */
  export interface Trigger {
    /** The turn calls this tool. */
    onToolCall?: string | { name: string; arguments?: Arguments };
    /** What the agent says matches. */
    onResponseMatch?: RegExp | string;
    /** What the user says matches. */
    onUserMatch?: RegExp | string;
    /** So many turns were in a topic. */
    afterTurnsIn?: { topic: string; count: number };
    /** This returns something true. */
    onCondition?: (turn: Turn, conversation: Conversation) => unknown;
  }

  /** What is asserted of the turns of a topic when the conversation leaves it. */
  export interface Invariant {
    satisfy?: string | Named | (string | Named)[];
    match?: RegExp | string;
    notMatch?: RegExp | string;
    grounded?: string | string[];
    fromTools?: string[];
    toolCall?: string;
    [key: string]: unknown;
  }

  /** A topic of conversations. */
  export interface TopicDefinition {
    /** By what it is known. */
    characteristic?: string;
    /** What the agent is up to in it. */
    agentIntent?: string;
    triggers?: Trigger[];
    /** What is measured when the conversation leaves it. */
    evaluate?: Invariant | Invariant[];
    /** What has to hold when the conversation leaves it. */
    expect?: Invariant | Invariant[];
    /** Kinds of facts that must not be claimed in it without support. */
    forbidClaims?: string[];
    /** Tools that must not be called in it. */
    forbidToolCalls?: string[];
    /** How many turns may be spent in it. */
    maxTurns?: number;
    [key: string]: unknown;
  }

  /** A topic that graphs refer to by its name. */
  export function topic(name: string, definition?: TopicDefinition): Named;

  /** Which topics may follow on which. The first one is where the conversation begins. */
  export interface Graph {
    /** The names of topics that may follow, or a topic of this graph alone with `next`; null where the conversation ends. */
    [topic: string]: null | string | string[] | (TopicDefinition & { next?: null | string | string[]; from?: "any" });
  }

  /** Follows the topics of the conversation through a graph. Turns that were held before are followed too. */
  export function expectConversationTo(graph: Graph): void;

  /** A scenario: a goal, and what else is known. */
  export interface Scenario {
    readonly id?: string;
    readonly name: string;
    readonly goal: string;
    readonly context?: readonly string[];
    readonly personality?: string | null;
    readonly verification?: { readonly [key: string]: any };
    readonly [key: string]: any;
    /** What it says under a name or a path, `verification.people`; that it says nothing there is a mistake. */
    get(path: string): any;
  }
  /** A scenario as it is written. */
  export type ScenarioData = Omit<Scenario, "get">;

  /**
   * Calls a function with each scenario of a file of JSON, JSON lines or YAML (its path from this file, or from the project)
   * or of a list.
   */
  export function scenarioSet(
    name: string,
    source: string | { from: string } | { scenarios: ScenarioData[] } | ScenarioData[],
    body: (scenario: Scenario) => void,
  ): void;

  // ---- the conversation ------------------------------------------------------------------------------------------------

  /** What a value or an argument may be: as it is, or a pattern, a function or a `Matcher` that decides. */
  export type Expected = Json | RegExp | Matcher | ((value: any) => unknown) | { [key: string]: Expected } | Expected[];
  /** Arguments of a call that have to be there; others may be there too. One that is undefined is a mistake of the test. */
  export type Arguments = { [name: string]: Expected };

  /** A call of a tool. */
  export interface ToolCall {
    readonly id: string;
    readonly name: string;
    readonly arguments: any;
    /** What the tool returned. */
    readonly result?: any;
    /** Why the tool failed. */
    readonly error?: any;
    /** The turn it was made in, from 1. */
    readonly turn: number;
    argument(name: string): any;
  }

  /** What the user or the agent said. */
  export interface Message {
    readonly role: "user" | "agent";
    readonly content: string;
    /** Milliseconds since 1970. */
    readonly timestamp?: number;
    readonly toolCalls: ToolCall[];
    /** `script`, `simulator`, `person` or `agent`. */
    readonly source: string;
    /** Of what the user says: the `options` of the turn. */
    readonly metadata: { readonly [key: string]: any };
    readonly isUser: boolean;
    readonly isAgent: boolean;
    hasToolCall(name: string): boolean;
  }

  /** What the agent said and did in a turn. */
  export interface AgentResponse {
    readonly text: string;
    readonly toolCalls: ToolCall[];
    readonly metadata: { readonly [key: string]: any };
    /** How many characters it said. */
    readonly length: number;
    readonly isEmpty: boolean;
    matches(pattern: RegExp): boolean;
    includes(text: string): boolean;
    hasToolCall(name: string, args?: Arguments): boolean;
    findToolCalls(name: string, args?: Arguments): ToolCall[];
    toString(): string;
  }

  /** One input of the user and everything until the agent was done. */
  export interface Turn {
    /** Its place, from 1. */
    readonly number: number;
    readonly userMessage: Message;
    readonly agentResponse: AgentResponse;
    readonly agentMessage: Message;
    readonly topic?: string | null;
    readonly toolCalls: ToolCall[];
    readonly durationMs?: number;
    hasToolCall(name: string, args?: Arguments): boolean;
    findToolCalls(name: string, args?: Arguments): ToolCall[];
    toolCall(name: string): ToolCall | undefined;
  }

  /** What something that was asserted came to. */
  export interface EvaluationResult {
    readonly mode: "hard" | "soft";
    readonly type?: string;
    readonly description: string;
    readonly passed: boolean;
    /** Why it could not be decided. */
    readonly error?: string | null;
    readonly actual: string;
    readonly message?: string | null;
    /** The turn it is about, from 1; null for the whole conversation. */
    readonly turn?: number | null;
    /** The criterion that it decides: its name, or what it says. */
    readonly criterion?: string | null;
    /** Why a judge has decided so. */
    readonly reasoning?: string | null;
    /** The topic that asserts it, and which visit of it, from 1. */
    readonly topic?: string | null;
    readonly visit?: number | null;
  }

  /** Everything that was said and done. */
  export interface Conversation {
    readonly messages: Message[];
    readonly turns: Turn[];
    readonly allToolCalls: ToolCall[];
    readonly currentTopic: string | null;
    /** The names of the topics that were visited, in order. */
    readonly topicHistory: string[];
    readonly topicVisits: { topic: string; visit: number; turns: Turn[] }[];
    readonly evaluationResults: EvaluationResult[];
    readonly softEvaluations: EvaluationResult[];
    readonly hardEvaluations: EvaluationResult[];
    readonly turnCount: number;
    readonly lastTurn?: Turn;
    readonly lastUserMessage?: Message;
    readonly lastAgentResponse?: AgentResponse;
    readonly isEmpty: boolean;
    hasToolCall(name: string, args?: Arguments): boolean;
    /** How often the tool was called. */
    calledTool(name: string, args?: Arguments): number;
    toolCallsFor(name: string, args?: Arguments): ToolCall[];
    inTopic(name: string): boolean;
    /** How many turns were in the topic, over all visits. */
    turnsInTopic(name: string): number;
    turnsForTopic(name: string): Turn[];
  }

  /** The agent in the last turn. */
  export interface Agent {
    readonly response: AgentResponse;
    readonly lastResponse: AgentResponse;
    readonly currentTurn: Turn;
    readonly currentTopic: string | null;
    readonly toolCalls: ToolCall[];
    calledTool(name: string, args?: Arguments): number;
    inTopic(name: string): boolean;
    responseMatches(pattern: RegExp): boolean;
  }

  /** A turn as a case file has it. */
  export interface Input {
    user: string | { [key: string]: Json } | { [key: string]: Json }[];
    attachments?: { [key: string]: Json }[];
    options?: { [key: string]: Json };
    /** How long the turn may take. */
    timeout?: string;
    /** The error that the agent has to end the turn with. */
    expectError?: RegExp | string | { message?: RegExp | string; code?: RegExp | string };
    /** Answers to what the agent asks a person. */
    resume?: { [key: string]: Json }[];
    /** What is asserted of the turn. */
    assert?: Assertion | Assertion[];
    /** What is measured of the turn. */
    evaluate?: Assertion | Assertion[];
  }

  /** Why a simulated user has stopped. */
  export interface Simulated {
    readonly reason: "goal_reached" | "max_turns" | "stop_condition" | string;
    readonly [key: string]: any;
  }

  /** The user of the conversation. */
  export interface User {
    /** Says something, and waits until the agent is done with it. */
    says(input: string | Input, options?: Partial<Input>): AgentResponse;
    /** Has a simulated user go on from here. */
    simulate(brief: Brief & { goal: string; template?: string }): Simulated;
  }

  /** What the user says. */
  export const user: User;
  /** The agent in the last turn: `expect(agent)` asserts of that turn. */
  export const agent: Agent;
  /** The whole conversation: `expect(conversation)` asserts of all its turns. */
  export const conversation: Conversation;

  // ---- what is asserted ------------------------------------------------------------------------------------------------

  /** A typed assertion or a block, as case files have them. */
  export type Assertion = { [key: string]: any };

  /** Stands for all values that fit. */
  export interface Matcher {
    readonly words: string;
  }
  /** Any greater number. */
  export function gt(limit: number): Matcher;
  /** This number or any greater one. */
  export function gte(limit: number): Matcher;
  /** Any smaller number. */
  export function lt(limit: number): Matcher;
  /** This number or any smaller one. */
  export function lte(limit: number): Matcher;
  /** Any number from the one to the other. */
  export function between(least: number, most: number): Matcher;
  /** One of these values. */
  export function oneOf(...values: Json[]): Matcher;
  /** Anything but null and undefined. */
  export function anything(): Matcher;

  /** A criterion: the name of one, a text that is judged as it is, a function, or a function with a name. */
  export type Criterion<Judged> = string | Named | ((judged: Judged, conversation: Conversation) => unknown) | [string, (judged: Judged, conversation: Conversation) => unknown];

  /** How often a tool is called; `max` alone holds without a call. */
  export interface Calls {
    times?: number | { min?: number; max?: number; exact?: number };
  }

  /** What can be asserted of the agent's last turn, or of the whole conversation. */
  export interface ConversationMatchers<Judged> {
    /** All of these criteria are satisfied. Each is judged by itself. */
    toSatisfy(name: string, decides: (judged: Judged, conversation: Conversation) => unknown): void;
    toSatisfy(...criteria: (Criterion<Judged> | Criterion<Judged>[])[]): void;
    /** What the agent says matches all of these. */
    toMatch(...patterns: (RegExp | string)[]): void;
    /** What the agent says matches one of these. */
    toMatchAny(...patterns: (RegExp | string)[]): void;
    /** The agent says all of these: in its last turn, or in any turn of the conversation. With `not`, one text. */
    toContain(...texts: string[]): void;
    /** The tool, or one of these, is called, with these arguments among others. */
    toCallTool(name: string | string[], args?: Arguments, calls?: Calls): void;
    /** The same as `toCallTool`. */
    toHaveToolCall(name: string | string[], args?: Arguments, calls?: Calls): void;
    /** What the agent says of these kinds of facts is supported by what tools returned. */
    toBeGroundedIn(types: string[], options?: { fromTools?: string[] }): void;
    toBeGroundedIn(...types: string[]): void;
    /** The agent claims such facts without support. Mostly used with `not`. */
    toClaim(types: string[], options?: { absolute?: boolean; fromTools?: string[] }): void;
    toClaim(...types: string[]): void;
    /** What the agent is up to. */
    toHaveIntent(name: string, options?: { describedAs?: string }): void;
    /** The conversation is in this topic. */
    toBeInTopic(topic: string | Named): void;
    /** The conversation was in this topic. */
    toHaveReachedTopic(topic: string | Named): void;
    /** The goal that the simulated user was given is achieved. */
    toHaveAchievedStatedGoal(): void;
    /** This goal is achieved. */
    toHaveAchievedGoal(goal: string): void;
    /** Assertions of case files hold: `{ type: "tool_result", tool: "search", result: … }`. */
    toHold(assertion: Assertion | Assertion[]): void;
    /** The contrary. What cannot be decided holds neither way. */
    readonly not: ConversationMatchers<Judged>;
  }

  /** What can be asserted of values. */
  export interface ValueMatchers<T> {
    /** The same value. */
    toBe(expected: T | Matcher): void;
    /** An equal value, in depth. */
    toEqual(expected: unknown): void;
    /** An object with at least these members. */
    toMatchObject(expected: Expected): void;
    /** A text with these parts, or a list with these entries. */
    toContain(...parts: unknown[]): void;
    /** A list with entries equal to these. */
    toContainEqual(...parts: unknown[]): void;
    /** A text that matches. */
    toMatch(pattern: RegExp | string): void;
    toHaveLength(length: number): void;
    /** Something at this path: `a.b[0]`. */
    toHaveProperty(path: string | (string | number)[], value?: unknown): void;
    toBeGreaterThan(limit: number | bigint | string): void;
    toBeGreaterThanOrEqual(limit: number | bigint | string): void;
    toBeLessThan(limit: number | bigint | string): void;
    toBeLessThanOrEqual(limit: number | bigint | string): void;
    /** A number that is the same to so many digits. Default: 2. */
    toBeCloseTo(expected: number, digits?: number): void;
    toBeTruthy(): void;
    toBeFalsy(): void;
    toBeNull(): void;
    toBeUndefined(): void;
    toBeDefined(): void;
    toBeNaN(): void;
    /** `string`, `number`, `boolean`, `array`, `object`, `function`, `null`, `undefined`. */
    toBeTypeOf(name: string): void;
    toBeInstanceOf(type: new (...args: any[]) => unknown): void;
    /** A value for which this returns something true. */
    toSatisfy(decides: (value: T) => unknown): void;
    /** A function that throws: anything, an error with this in its message, or of this class. */
    toThrow(expected?: string | RegExp | (new (...args: any[]) => unknown) | Error): void;
    /** The contrary. */
    readonly not: ValueMatchers<T>;
  }

  interface Asserting {
    (agent: Agent, message?: string): ConversationMatchers<Turn>;
    (conversation: Conversation, message?: string): ConversationMatchers<Conversation>;
    <T>(value: T, message?: string): ValueMatchers<T>;
  }
  /** What has to hold. If it does not, the test ends there and fails. */
  export const expect: Asserting;
  /** What is measured. The test goes on whatever it comes to. */
  export const evaluate: Asserting;

  // ---- test functions --------------------------------------------------------------------------------------------------

  /** On whose behalf agents are spoken to. */
  export interface CallContext {
    readonly locale?: string;
    readonly authorized?: { readonly [key: string]: any };
    readonly metadata?: { readonly [key: string]: any };
    readonly [key: string]: any;
  }

  /** What a judge has found. */
  export interface Judgement {
    readonly passed: boolean;
    readonly score?: number | null;
    readonly reason?: string | null;
    readonly suggestions?: string[];
    /** Why it could not be judged. */
    readonly error?: string | null;
  }

  /** What is asserted in test functions. The test goes on and fails at its end; each returns whether it holds. */
  export interface Asserts {
    True(value: unknown, message?: string): boolean;
    False(value: unknown, message?: string): boolean;
    /** Equal in depth. */
    Equal(actual: unknown, expected: unknown, message?: string): boolean;
    NotEqual(actual: unknown, expected: unknown, message?: string): boolean;
    /** Null or undefined. */
    Nil(value: unknown, message?: string): boolean;
    NotNil(value: unknown, message?: string): boolean;
    /** A part of a text, an entry of a list, or something in an object. */
    Contains(value: unknown, part: unknown, message?: string): boolean;
    NotContains(value: unknown, part: unknown, message?: string): boolean;
    /** Characters of a text, entries of a list, keys of an object. */
    Len(value: unknown, length: number, message?: string): boolean;
    Greater(a: unknown, b: unknown, message?: string): boolean;
    GreaterOrEqual(a: unknown, b: unknown, message?: string): boolean;
    Less(a: unknown, b: unknown, message?: string): boolean;
    LessOrEqual(a: unknown, b: unknown, message?: string): boolean;
    /** Anything but null and undefined. */
    Error(value: unknown, message?: string): boolean;
    NoError(value: unknown, message?: string): boolean;
    /** The function throws. For an async function the result is a promise. */
    Panic(work: () => Promise<unknown>, message?: string): Promise<boolean>;
    Panic(work: () => unknown, message?: string): boolean;
    NoPanic(work: () => Promise<unknown>, message?: string): Promise<boolean>;
    NoPanic(work: () => unknown, message?: string): boolean;
    Match(value: unknown, pattern: RegExp | string, message?: string): boolean;
    NotMatch(value: unknown, pattern: RegExp | string, message?: string): boolean;
    /** `string`, `number`, `boolean`, `array`, `object`, `function`, `null`, `undefined`. */
    Type(value: unknown, name: string, message?: string): boolean;
    /** What a JSON path selects. */
    JSONPath(value: unknown, path: string, expected: unknown, message?: string): boolean;
    /** A judge says so: an agent of the project by its id. */
    Agent(
      response: unknown,
      judge: string,
      options?: { criteria?: unknown; metadata?: { [key: string]: any }; connector?: string },
    ): Judgement;
  }

  /** What test functions are given: `export function TestGreeting(t: TestingT) { … }`. */
  export interface TestingT {
    readonly name: string;
    /** Whether something has failed so far. */
    readonly failed: boolean;
    log(...values: unknown[]): void;
    /** Marks the test as failed, with these words, and goes on. */
    error(...values: unknown[]): void;
    /** Marks the test as failed and goes on. */
    fail(reason?: string): void;
    /** Marks the test as failed and ends it. */
    fatal(reason?: string): never;
    /** Ends the test as one that is left out; what has failed before stays failed. */
    skip(reason?: string): never;
    /** Runs a part of the test by itself. Returns whether nothing has failed in it. */
    run(name: string, work: (t: TestingT) => Promise<void>): Promise<boolean>;
    run(name: string, work: (t: TestingT) => void): boolean;
    readonly assert: Asserts;
  }
}

// What scripts find without an import.

/** What test functions are given. */
type TestingT = import("hotseat").TestingT;
/** On whose behalf agents are spoken to. */
type Context = import("hotseat").CallContext;

/** Calls an agent (`agents.ID`), a function of another script (`scripts.path.name`), or what the project file names. */
declare function Process(name: string, ...args: any[]): any;

/** Files of the project, as far as `scripts: read` and `scripts: write` of the project file grant them. */
declare const files: {
  read(path: string): string;
  write(path: string, text: string): void;
  append(path: string, text: string): void;
  exists(path: string): boolean;
  list(path?: string): string[];
  /** Whether there was one. */
  remove(path: string): boolean;
};

/** Environment variables, as far as `scripts: env` of the project file lists them. */
declare var process: { readonly env: { readonly [name: string]: string | undefined } };

/** What is said to it is in the reports. */
declare var console: {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  dir(value: unknown): void;
  assert(holds: unknown, ...values: unknown[]): void;
};

/** Headers of a request or an answer. */
declare class Headers {
  constructor(headers?: Headers | { [name: string]: string } | [string, string][]);
  get(name: string): string | null;
  has(name: string): boolean;
  set(name: string, value: string): void;
  append(name: string, value: string): void;
  delete(name: string): void;
  forEach(each: (value: string, name: string) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** An answer. It is there at once, and may be awaited. */
interface Response {
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: Headers;
  text(): string;
  json(): any;
}

/** Sends a request to a host that `scripts: hosts` of the project file lists. */
declare function fetch(
  url: string | { url: string },
  options?: {
    method?: string;
    headers?: Headers | { [name: string]: string } | [string, string][];
    body?: string;
    redirect?: "follow" | "manual" | "error";
  },
): Response;
