//! Known weaknesses of the predecessor of tests in code, and the behaviour required instead.
//!
//! The weaknesses are numbered 1 to 10; unnumbered ones were found by reading its source. Tests that cover them:
//!
//! | | weakness | covered by |
//! |---|---|---|
//! | 1 | its own three examples fail | `typescript::documented_examples_run_against_booking_agent`, `dsl_booking` of `hotseat` (the same in Rust) |
//! | 2 | undecided judgements pass, and so does everything without a judge | `criteria::invalid_judge_answers_never_pass`, `criteria::truncated_or_refused_judge_answers_never_pass`, `criteria::unknown_judge_fails_before_first_turn`, `judging::unknown_judge_decides_nothing` |
//! | 3 | reports lack topic assertions, reasons, turns and topics | `simulate::topics_are_judged_on_exit_and_can_stop_conversation`, `topics::judge_tracks_topics_of_scripted_conversation`, `criteria::each_criterion_is_judged_separately`, `typescript::assertion_names_are_resolved` |
//! | 4 | only the first visit of a topic is judged, repeatedly | `simulate::each_topic_visit_is_judged_by_its_own_turns` |
//! | 5 | examples are lost in parallel runs, and a crashing worker ends the run | here; `execution::blocking_examples_run_in_parallel`, `runner::fail_fast_starts_no_case_after_failure` |
//! | 6 | results with the same name overwrite each other | `errors::rejects_duplicate_case_names`, `runner::same_name_in_two_files_is_two_cases`, `typescript::declaration_errors_are_reported_before_run`, `selection::rejects_ambiguous_examples` |
//! | 7 | duplicate, invalid or unused declarations are ignored | here; `judging::rejects_invalid_declarations_before_run`, `topics::graph_errors_report_their_lines`, `typescript::unresolved_names_are_test_errors_even_if_soft` |
//! | 8 | `false` cannot be matched, and conversations have no matchers | here; `matchers::arguments_compare_as_written`, `topics::every_trigger_kind_fires` |
//! | 9 | every failure is reported as a failed expectation | here; `reports::json_has_documented_members_for_conversations`, `simulate::turn_limit_fails_case_only_with_failed_hard_check` |
//! | 10 | soft checks abort the test when the judge fails | `criteria::late_or_unreachable_judge_never_passes`, `topics::undecided_soft_topic_check_does_not_end_case`, `typescript::criteria_use_project_judge` |
//! | | the judge sees neither tool results nor earlier turns | `criteria::judge_sees_all_turns_calls_and_results`, `criteria::groundedness_is_judged_from_tool_results` |
//! | | the judge of a goal sees no tool results | `criteria::goal_defaults_to_case_goal` |
//! | | agent text can instruct the judge | `criteria::prompt_injection_does_not_pass_judge` |
//! | | no retries, time limits or judge costs | `criteria::unusable_judge_answer_is_retried`, `criteria::rate_limited_judge_is_retried`, `criteria::trace_records_every_judge_request_with_cost` |
//! | | hooks around examples are never called, and agents keep state | `examples::hooks_nest_around_each_example_even_on_failure`, `execution::innermost_agent_is_used_and_created_per_example` |
//! | | the judge cannot be set per group or check | `criteria::judge_is_configurable_at_every_level` |
//! | | the simulated user cannot end the conversation | `simulate::end_of_simulation_is_recorded` |
//! | | soft and hard checks are counted together, by matcher text | `criteria::soft_criteria_are_reported_separately` |
//! | | a run is saved only at its end | `interrupted`, `reports::json_lines_are_written_as_cases_finish`, `events::emits_events_during_run` |
//! | | comparison, event lines and saved runs are specified but missing | `compare`, `events`, `saved_runs` |

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Project, TestRun, echo_agent};

/// First line of the test files.
const IMPORTS: &str = "import { describe, it, criterion, topic, scenarioSet, expectConversationTo, user, agent, conversation, expect, evaluate, gt } from 'hotseat';";

fn project(agent: &FakeAgent, script: &str) -> Project {
    Project::with_agent(agent).file("a_test.ts", &format!("{IMPORTS}\n{script}"))
}

fn status<'a>(tested: &'a TestRun, case: &str) -> &'a str {
    tested.case(case)["status"].as_str().unwrap()
}

// 5
#[test]
fn crashing_examples_do_not_lose_other_results() {
    let agent = echo_agent();
    let script = "
      const all = Array.from({ length: 6 }, (_, n) => ({ id: `s${n}`, name: `scenario ${n}`, goal: `goal ${n}` }));
      scenarioSet('all', all, (one) => { it(`handles ${one.name}`, () => { expect(user.says(one.goal).text).toContain(one.goal); }); });
      it('hangs', { timeout: '300ms' }, () => { while (true) {} });
      it('eats all memory', () => { const all = []; while (true) all.push(new Array(1e6).fill(all)); });
      it('recurses', () => { const again = () => again() + 1; again(); });
    ";
    let project = project(&agent, script);
    let tested =
        project.test(&["a_test.ts", "--parallel", "4", "-o", "out/page.html", "-o", "out/lines.jsonl"]);
    assert_eq!((tested.count("total"), tested.count("passed"), tested.count("failed")), (9, 6, 3));
    for n in 0..6 {
        let case = tested.case(&format!("handles scenario {n}"));
        assert_eq!(
            (&case["status"], &case["output"]),
            (&json!("passed"), &json!(format!("You said: goal {n}")))
        );
        assert_eq!(case["scenario"]["id"], format!("s{n}"));
    }
    for dead in ["hangs", "eats all memory", "recurses"] {
        assert_eq!(tested.failure(dead)["kind"], "script_error", "{dead}");
    }
    let lines = project.workspace.read("out/lines.jsonl");
    let page = project.workspace.read("out/page.html");
    for result in tested.results() {
        let name = result["name"].to_string();
        assert!(lines.contains(&format!("\"name\":{name}")), "{name}: {lines}");
        assert!(page.contains(&name), "{name} is missing from the page");
    }
}

// 5
#[test]
fn fail_fast_stops_sequential_run() {
    let agent = echo_agent();
    let script = "
      it('a', () => { user.says('one'); });
      it('b', () => { user.says('two'); expect(agent).toContain('nowhere'); });
      it('c', () => { user.says('three'); });";
    let tested = project(&agent, script).test(&["a_test.ts", "--parallel", "1", "--fail-fast"]);
    assert_eq!(["a", "b", "c"].map(|name| status(&tested, name)), ["passed", "failed", "skipped"]);
    assert_eq!(agent.requests().len(), 2);
}

// 7
#[test]
fn no_declared_example_is_lost() {
    let script = "
      criterion('polite', 'The agent says please', { match: () => false });
      criterion('short', 'It says little', { matchMessages: (messages) => messages.length === 0 });
      topic('a', { characteristic: 'a' });
      topic('b', { characteristic: 'b' });
      it('has words', () => { user.says('hi'); evaluate(agent).toSatisfy('short'); expect(agent).toSatisfy('polite'); });
      it('has no such option', () => { expectConversationTo({ a: { next: 'b', bogus: 1 }, b: null }); });
      it('has no such rule', () => { user.simulate({ goal: 'x', may: ['y'] }); });";
    let agent = echo_agent();
    let tested = project(&agent, script).test(&["a_test.ts"]);
    let failure = tested.failure("has words");
    let words =
        "expected the agent to satisfy polite: The agent says please, got the function returned false";
    assert_eq!(failure["message"], words, "{failure:#}");
    let measured = &tested.case("has words")["turns"][0]["assertions"][0];
    assert_eq!(measured["expected"], "the agent to satisfy short: It says little", "{measured:#}");
    for (name, words) in [("has no such option", "`bogus`"), ("has no such rule", "`may`")] {
        let failure = tested.failure(name);
        assert_eq!(failure["fault"], "test", "{failure:#}");
        assert!(failure["message"].as_str().unwrap().contains(words), "{failure:#}");
    }
    assert_eq!(agent.requests().len(), 1);
}

/// An agent that calls a tool with falsy arguments.
fn falsy_argument_agent() -> FakeAgent {
    FakeAgent::with_run(|run, _| {
        let arguments = json!({"catering": false, "seats": 0, "note": null, "name": "", "people": 10});
        run.tool("c1", "book", &arguments, Some(json!(false))).text("ok").finished()
    })
}

// 8
#[test]
fn falsy_arguments_match_exactly() {
    let mut script = String::new();
    let mut expected = Vec::new();
    for (of, matcher) in [("agent", "toCallTool"), ("conversation", "toHaveToolCall")] {
        for (arguments, holds) in [
            ("{ catering: false }", true),
            ("{ catering: true }", false),
            ("{ catering: null }", false),
            ("{ catering: 0 }", false),
            ("{ seats: 0 }", true),
            ("{ seats: false }", false),
            ("{ note: null }", true),
            ("{ name: '' }", true),
            ("{ name: null }", false),
            ("{ people: gt(9), catering: false }", true),
            ("{ people: gt(10) }", false),
            ("{ people: (n) => n === 10 }", true),
            ("{ name: /^$/ }", true),
        ] {
            let name = format!("{of} {arguments}");
            let quoted = Value::from(name.as_str());
            script += &format!(
                "it({quoted}, () => {{ user.says('x'); expect({of}).{matcher}('book', {arguments}); }});\n"
            );
            expected.push((name, if holds { "passed" } else { "failed" }));
        }
    }
    let tested = project(&falsy_argument_agent(), &script).test(&["a_test.ts"]);
    for (name, expected) in &expected {
        assert_eq!(status(&tested, name), *expected, "{name}");
    }
    // The same assertions in case files and in topic triggers.
    for (value, holds) in [("false", true), ("true", false), ("null", false), ("0", false)] {
        let suite = format!(
            "name: called
turns: [{{ user: x, assert: {{ type: tool_called, name: book, arguments: {{ catering: {value} }} }} }}]
---
name: topic
classify_topics: triggers
graph:
  a: {{ next: b, characteristic: A }}
  b: {{ triggers: {{ on_tool_call: book, with_params: {{ catering: {value} }} }} }}
turns: [{{ user: x, assert: {{ type: topic, name: b }} }}]
"
        );
        let tested = Project::with_agent(&falsy_argument_agent()).suite("a", &suite).test(&[]);
        let expected = if holds { "passed" } else { "failed" };
        assert_eq!((status(&tested, "called"), status(&tested, "topic")), (expected, expected), "{value}");
    }
}

// 9
#[test]
fn every_failure_has_a_distinct_message() {
    let agent = FakeAgent::start(|request: &FakeRequest| match request.last_user_text().as_str() {
        "hang" => FakeReply::never(),
        "err" => FakeRun::for_request(request).started().error("no rooms", Some("E1")).into(),
        said => FakeRun::for_request(request).started().text(said).finished().into(),
    });
    let simulated = FakeAgent::with_run(|run, _| {
        let said = json!({"message": "a room", "done": false, "goal_progress": "none", "reason": ""});
        run.text(&said.to_string()).finished()
    });
    let script = "
      topic('a', { expect: { toolCall: 'book' } });
      it('assertion', () => { user.says('x'); expect(agent).toContain('nowhere'); });
      it('agent', () => { user.says('err'); });
      it('script', () => { user.says('x'); missing(); });
      it('name', () => { user.says('x'); evaluate(agent).toSatisfy('missing'); });
      it('turn', () => { user.says({ user: 'hang', timeout: '200ms' }); });
      it('whole', { timeout: '3s' }, () => { user.says('x'); user.says('hang'); });
      it('limit', () => { expectConversationTo({ a: null }); user.simulate({ goal: 'x', maxTurns: 2 }); });
      it('none', () => { user.simulate({ goal: 'x', maxTurns: 1 }); });";
    let text = format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ simulated: {{ endpoint: '{simulated}' }} }}\nsimulator: simulated\n"
    );
    let project = Project::with_config(&text).file("a_test.ts", &format!("{IMPORTS}\n{script}"));
    let tested = project.test(&["a_test.ts"]);
    for (name, kind, fault, failure_type) in [
        ("assertion", "assertion", "agent", "assertion"),
        ("agent", "agent_error", "agent", "error"),
        ("script", "script_error", "test", "error"),
        ("name", "test_error", "test", "error"),
        ("turn", "timeout", "agent", "timeout"),
        ("whole", "timeout", "agent", "timeout"),
        ("limit", "max_turns", "agent", "max_turns"),
    ] {
        tested.assert_fault(name, kind, fault);
        assert_eq!(tested.case(name)["completion"]["failure_type"], failure_type, "{name}");
    }
    assert_eq!(status(&tested, "none"), "passed", "the limit alone fails nothing");
}
