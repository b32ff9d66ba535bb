//! What plain test functions come to, and what is seen of it. Those that do not pass are started by the tests below.

use std::process::{Command, Output};

use hotseat_attributes::agent_spec;

#[agent_spec("Parrot")]
mod parrot {
    use hotseat::dsl::prelude::*;

    #[setup]
    fn agent(g: &mut Group) {
        g.agent(replies(async |messages: Vec<Message>| {
            format!("You said {}", messages.last().map_or("nothing", |message| &message.content))
        }));
    }

    #[setup]
    fn first(g: &mut Group) {
        g.before(async |t| {
            t.user.says("outer").await;
        });
    }

    #[it("repeats what it hears")]
    async fn repeats(user: User, agent: Agent, conversation: Conversation) {
        user.says("hello").await;
        expect!(agent, matches("You said hello"));
        expect!(conversation.turn_count(), eq(2));
    }

    #[it("is left out")]
    #[cfg(any())]
    async fn no_such_example(nothing: Nothing) {}

    #[it("says something else")]
    #[ignore = "does not hold"]
    async fn differs(t: Test) {
        t.user.says("hello").await;
        expect!(t.agent, matches("Good morning"));
    }

    #[it("comes to nothing")]
    #[ignore = "returns an error"]
    async fn breaks() -> Result<(), String> {
        Err("no words for it".to_string())
    }

    #[it("has no scenario")]
    #[ignore = "asks for one"]
    async fn lost(scenario: Scenario) {
        let _ = scenario.id();
    }

    #[context("that is spoken to again")]
    mod again {
        use super::*;

        #[setup]
        fn second(g: &mut Group) {
            g.before(async |t| {
                t.user.says("inner").await;
            });
        }

        #[it("inherits what is around it")]
        async fn inherits(conversation: Conversation) {
            let messages = conversation.messages().into_iter().filter(|message| message.role == Role::User);
            let said: Vec<String> = messages.map(|message| message.content).collect();
            expect!(said, eq(["outer", "inner"]));
        }

        #[it("stays on {subject.name} for {name}")]
        #[scenarios("tests/subjects.json")]
        async fn stays(user: User, scenario: Scenario) {
            let response = user.says(scenario.str("goal")).await;
            expect!(response.text(), contains(scenario.str("subject.name")));
        }

        #[it("leaves {subject.name}")]
        #[scenarios("tests/subjects.json")]
        #[ignore = "does not hold for one of two"]
        async fn leaves(user: User, scenario: Scenario) {
            let response = user.says(scenario.str("goal")).await;
            expect!(response.text(), contains("rooms"));
        }
    }
}

fn started(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]).env_remove("RUST_BACKTRACE").output().unwrap()
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_example_that_does_not_hold_fails_its_test_and_shows_why_and_where() {
    let output = started("parrot::differs");
    let shown = shown(&output);
    assert!(!output.status.success(), "{shown}");
    for words in
        ["Parrot::says something else", "matches(\"Good morning\")", "tests/outcomes.rs:", "You said hello"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(shown.contains("test result: FAILED. 0 passed; 1 failed"), "{shown}");
}

#[test]
fn errors_and_missing_scenarios_fail_their_tests_with_their_words() {
    for (test, words) in
        [("parrot::breaks", "no words for it"), ("parrot::lost", "this example has no scenario")]
    {
        let output = started(test);
        let shown = shown(&output);
        assert!(!output.status.success() && shown.contains(words), "{shown}");
    }
}

#[test]
fn each_scenario_is_a_case_and_one_that_fails_fails_the_test() {
    let output = started("parrot::again::leaves");
    let shown = shown(&output);
    assert!(!output.status.success(), "{shown}");
    assert!(shown.contains("that is spoken to again::leaves flowers"), "{shown}");
    assert!(shown.contains("Passed:    1") && shown.contains("Failed:    1"), "{shown}");
}

#[test]
fn what_passes_is_silent() {
    let output =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", "parrot::repeats"]).output().unwrap();
    let shown = shown(&output);
    assert!(output.status.success() && !shown.contains("Parrot"), "{shown}");
}
