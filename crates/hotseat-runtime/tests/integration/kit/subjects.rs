//! Conversations of the fourteen foundation tests.

use std::time::Duration;

use hotseat_model::TimedValue;
use hotseat_runtime::conversation::ApprovalVerdict;
use hotseat_runtime::definition::schema::{integer, number, object, string};
use hotseat_runtime::definition::{
    MemoryAction, Persona, StepAction, WorkflowDefinition, assemble, context, memory, mock, persona, step,
    task, tool, workflow,
};
use serde_json::json;

use super::{Test, at};

/// A slow workflow.
pub fn slow(name: &str) -> WorkflowDefinition {
    workflow(name).node(task(name).step(mock().delay_ms(2000).returns(json!({"found": "use OAuth"}))))
}

pub fn greeter() -> Test {
    let greeter = persona("Greeter").system("You are a friendly greeter. Respond briefly.");
    Test::new(greeter, ["Hello!"], [at("greeter", 1, 1).say("Hello to you.")])
}

pub fn sync_tool() -> Test {
    let echo =
        task("Echo Task").input(object([("text", string())])).output(object([("echoed", string())])).step(
            step(mock().computes("{echoed: input.text}"))
                .named("echo")
                .input("text", "input.text")
                .output("output.echoed", "result.echoed"),
        );
    let agent = persona("Echo Agent").system("Use the echo tool when asked to echo something.").tool(
        tool("echo").description("Echo back the input text").input(object([("text", string())])).task(&echo),
    );
    let script = [
        at("echo-agent", 1, 1).call_tool("echo", json!({"text": "hello world"})),
        at("echo-agent", 1, 2)
            .expect(hotseat_model::script::Rule::new().tool_result("echo"))
            .say("hello world"),
    ];
    Test::new(agent, ["Echo: hello world"], script)
}

pub fn async_tool() -> Test {
    let agent = persona("Researcher").system("Use the research tool for research questions.").tool(
        tool("research")
            .description("Research a topic (takes time)")
            .input(object([("topic", string())]))
            .workflow(&slow("Slow Research"))
            .asynchronous(),
    );
    let script = [
        at("researcher", 1, 1)
            .say("I am working on it: research has started.")
            .call_tool("research", json!({"topic": "authentication"})),
        at("researcher", 1, 2).notice("OAuth").say("Research says: use OAuth."),
    ];
    Test::new(agent, ["Research authentication patterns"], script)
}

pub fn multi_turn() -> Test {
    let agent = persona("Multi-Turn Agent").system("Remember the conversation.");
    let script = [
        at("multi-turn-agent", 1, 1).say("Nice to meet you, Alice."),
        at("multi-turn-agent", 2, 1).say("Your name is Alice."),
        at("multi-turn-agent", 3, 1).say("You are welcome."),
    ];
    Test::new(agent, ["My name is Alice.", "What is my name?", "Thank you for remembering!"], script)
        .sequential()
}

pub fn parallel() -> Test {
    let fast = task("Fast").step(mock().returns(json!({"port": 8080})));
    let agent = persona("Multi-tasker")
        .tool(tool("slow_task").workflow(&slow("Slow")).asynchronous())
        .tool(tool("fast_task").task(&fast));
    let script = [
        at("multi-tasker", 1, 1).say("I have started on it.").call_tool("slow_task", json!({})),
        at("multi-tasker", 1, 2).notice("OAuth").say("Slow research is done."),
        at("multi-tasker", 2, 1).call_tool("fast_task", json!({})),
        at("multi-tasker", 2, 2).say("The port is 8080."),
    ];
    Test::new(agent, ["Do slow research", "Do fast lookup"], script)
}

pub fn workflow_tool() -> Test {
    let lookup = workflow("Lookup")
        .input(object([("query", string())]))
        .node(task("Lookup Task").step(mock().returns(json!({"answer": "Paris", "confidence": 0.9}))));
    let agent =
        persona("Lookup Agent").tool(tool("lookup").input(object([("query", string())])).workflow(&lookup));
    let script = [
        at("lookup-agent", 1, 1).call_tool("lookup", json!({"query": "capital of France"})),
        at("lookup-agent", 1, 2).say("Paris (0.9)."),
    ];
    Test::new(agent, ["Please look up: what is the capital of France?"], script)
}

pub const CODE: &str = "function add(a, b) { return a + b; }";

pub fn delegate() -> Test {
    let reviewer = persona("Reviewer").system("Review code and provide feedback.");
    let manager = persona("Manager").system("Delegate review tasks to the reviewer.").tool(
        tool("ask_reviewer")
            .description("Ask the reviewer to review code")
            .input(object([("code", string())]))
            .agent(&reviewer),
    );
    let script = [
        at("manager", 1, 1).call_tool("ask_reviewer", json!({"code": CODE})),
        at("reviewer", 1, 1).say("The code is fine."),
        at("manager", 1, 2).say("The reviewer says that the code is fine."),
    ];
    Test::new(manager, [format!("Please review this code: {CODE}").as_str()], script)
}

pub fn manager_of_architect() -> Persona {
    let architect = persona("Architect").system("ARCH");
    persona("Manager")
        .system("MANAGE")
        .tool(tool("loop_in_architect").input(object([("context", string())])).agent(&architect).loop_in())
}

pub fn loop_in() -> Test {
    let script = [
        at("manager", 1, 1).call_tool("loop_in_architect", json!({"context": "auth"})),
        at("architect", 1, 1).say("Use OAuth 2.1."),
        at("manager", 1, 2).say("The architect suggests OAuth 2.1."),
    ];
    Test::new(manager_of_architect(), ["We need an auth system. Get the architect."], script)
}

pub fn marking() -> WorkflowDefinition {
    workflow("Ctx").node(
        task("Build")
            .step(step(context()).named("capture").input("*", "input").output("state.captured", "result"))
            .step(StepAction::from(assemble().append_system("CTX-MARK"))),
    )
}

pub fn context_assembly() -> Test {
    let agent = persona("P").system("SYSTEM").context_assembly(&marking());
    Test::new(agent, ["a", "b"], [at("p", 1, 1).say("one"), at("p", 2, 1).say("two")]).sequential()
}

pub fn remembering() -> WorkflowDefinition {
    workflow("Mem").node(
        task("Extract").step(
            step(memory(MemoryAction::Write))
                .named("write")
                .input("kind", "'fact'")
                .input("content", "input.transcript[-1].reasoning")
                .output("state.id", "result.id"),
        ),
    )
}

pub fn memory_extraction() -> Test {
    let agent = persona("P").memory_extraction(&remembering());
    Test::new(agent, ["I am Alice and like tea."], [at("p", 1, 1).say("Noted: Alice likes tea")])
}

pub fn moves() -> Test {
    let one = task("One").step(mock().returns(json!({"done": 1})));
    let two = task("Two").step(mock().returns(json!({"done": 2})));
    let schema = object([("n", integer())]);
    let agent = persona("Stepper")
        .system("Step by step.")
        .tool(tool("step_one").input(schema.clone()).task(&one))
        .tool(tool("step_two").input(schema).task(&two));
    let script = [
        at("stepper", 1, 1).say("First step").call_tool("step_one", json!({"n": 1})),
        at("stepper", 1, 2).call_tool("step_two", json!({"n": 2})),
        at("stepper", 1, 3).say("Done."),
    ];
    Test::new(agent, ["Go"], script)
}

pub fn tool_failure() -> Test {
    let failing =
        task("Failing Task").step(mock().schema(object([("n", number())])).fails("Connection refused"));
    let agent = persona("Resilient Agent")
        .system("Try the flaky_service tool. If it fails, explain the error to the user.")
        .tool(tool("flaky_service").task(&failing));
    let script = [
        at("resilient-agent", 1, 1).call_tool("flaky_service", json!({})),
        at("resilient-agent", 1, 2).say("The service failed: Connection refused."),
    ];
    Test::new(agent, ["Call the flaky service"], script)
}

pub fn failing_workflow() -> WorkflowDefinition {
    workflow("Bad").node(task("Fail").step(mock().fails_infrastructure("store down")))
}

pub fn context_failure() -> Test {
    Test::new(persona("P").context_assembly(&failing_workflow()), ["hi"], [at("p", 9, 9).say("never")])
        .allow_failed_turns()
        .unused_steps()
}

pub fn extraction_failure() -> Test {
    Test::new(persona("P").memory_extraction(&failing_workflow()), ["hi"], [at("p", 1, 1).say("ok")])
}

/// A tool that needs approval, and a human who answers with this verdict after a second.
pub fn approval(verdict: ApprovalVerdict) -> Test {
    let charge = task("Charge").step(mock().computes("{charged: input.amount}"));
    let agent = persona("P").tool(
        tool("charge")
            .input(object([("amount", integer())]))
            .task(&charge)
            .approval("Charge {amount} to {card}?"),
    );
    let script = [
        at("p", 1, 1).say("Let me ask.").call_tool("charge", json!({"amount": 5})),
        at("p", 1, 2).say("Done."),
    ];
    Test::new(agent, ["Charge me"], script).with_externals(move |options| {
        let verdict = verdict.clone();
        options.human(move |_| Some(TimedValue { delay: Duration::from_secs(1), value: verdict.clone() }))
    })
}

/// All foundation conversations by name.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![
        ("01 single turn, no tools", greeter()),
        ("02 single turn, sync tool", sync_tool()),
        ("03 single turn, async tool", async_tool()),
        ("04 multi turn, sequential", multi_turn()),
        ("05 parallel turns", parallel()),
        ("06 tool dispatch, workflow", workflow_tool()),
        ("07 tool dispatch, agent, delegate", delegate()),
        ("08 tool dispatch, agent, loop in", loop_in()),
        ("09 context assembly workflow", context_assembly()),
        ("10 memory extraction workflow", memory_extraction()),
        ("11 move accumulation", moves()),
        ("12 tool failure handling", tool_failure()),
        ("13 context assembly failure", context_failure()),
        ("14 memory extraction failure", extraction_failure()),
    ]
}
