//! Outcomes of plain test functions and their output. The tests below start the failing ones.

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

    #[it("has a keyword as its name")]
    async fn r#match(user: User) {
        user.says("hello").await;
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

    fn tagged(it: &mut ExampleBuilder) {
        it.tag("slow").retries(1);
    }

    #[it("is said more of", with = tagged)]
    async fn tagged_one(t: Test) {
        expect!(t.tags(), eq(["slow"]));
        t.user.says("hello").await;
    }

    #[context("with fixtures")]
    mod fixtures {
        use super::*;
        use std::rc::Rc;

        struct Shop {
            name: String,
        }

        #[setup]
        fn shops(g: &mut Group) {
            g.fixture(async |t| Shop { name: format!("outer shop of {}", t.name()) });
            g.fixture(async |_| "one".to_string());
            g.fixture(async |_| "two".to_string());
        }

        #[it("gets what its groups have made")]
        async fn given(shop: Rc<Shop>, t: Test, again: Rc<Shop>) {
            assert!(Rc::ptr_eq(&shop, &again));
            expect!(shop.name, eq("outer shop of Parrot::with fixtures::gets what its groups have made"));
            t.user.says("hello").await;
        }

        #[it("cannot tell two of one type apart")]
        #[ignore = "fails"]
        async fn several(_text: Rc<String>) {}

        #[it("misses one")]
        #[ignore = "fails"]
        async fn missing(_number: Rc<u8>) {}

        #[context("of an inner group")]
        mod inner {
            use super::*;

            #[setup]
            fn shops(g: &mut Group) {
                g.fixture(async |_| Shop { name: "inner shop".to_string() });
            }

            #[it("gets the innermost")]
            async fn innermost(shop: Rc<Shop>, user: User) {
                expect!(shop.name, eq("inner shop"));
                user.says("hello").await;
            }
        }
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
        #[scenarios("tests/integration/attributes/subjects.json")]
        async fn stays(user: User, scenario: Scenario) {
            let response = user.says(scenario.str("goal")).await;
            expect!(response.text(), contains(scenario.str("subject.name")));
        }

        #[it("leaves {subject.name}")]
        #[scenarios("tests/integration/attributes/subjects.json")]
        #[ignore = "does not hold for one of two"]
        async fn leaves(user: User, scenario: Scenario) {
            let response = user.says(scenario.str("goal")).await;
            expect!(response.text(), contains("rooms"));
        }
    }
}

fn run_tests(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]).env_remove("RUST_BACKTRACE").output().unwrap()
}

fn normalized_output(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn failing_example_reports_reason_and_location() {
    let output = run_tests("attributes::outcomes::parrot::differs");
    let shown = normalized_output(&output);
    assert!(!output.status.success(), "{shown}");
    for words in [
        "Parrot::says something else",
        "matches(\"Good morning\")",
        "tests/integration/attributes/outcomes.rs:",
        "You said hello",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(shown.contains("test result: FAILED. 0 passed; 1 failed"), "{shown}");
}

#[test]
fn errors_and_missing_scenarios_fail_with_messages() {
    for (test, words) in [
        ("attributes::outcomes::parrot::breaks", "no words for it"),
        ("attributes::outcomes::parrot::lost", "this example has no scenario"),
    ] {
        let output = run_tests(test);
        let shown = normalized_output(&output);
        assert!(!output.status.success() && shown.contains(words), "{shown}");
    }
}

#[test]
fn scenarios_become_tests_named_by_id() {
    let (rooms, flowers) = (
        run_tests("attributes::outcomes::parrot::again::leaves::rooms"),
        run_tests("attributes::outcomes::parrot::again::leaves::flowers"),
    );
    assert!(
        rooms.status.success() && normalized_output(&rooms).contains("1 passed"),
        "{}",
        normalized_output(&rooms)
    );
    let shown = normalized_output(&flowers);
    assert!(!flowers.status.success() && shown.contains("0 passed; 1 failed"), "{shown}");
    assert!(shown.contains("that is spoken to again::leaves flowers"), "{shown}");
}

#[test]
fn lists_scenario_tests() {
    let output = Command::new(std::env::current_exe().unwrap()).args(["--list"]).output().unwrap();
    let shown = normalized_output(&output);
    for name in
        ["again::stays::rooms", "again::stays::flowers", "again::leaves::rooms", "again::leaves::flowers"]
    {
        assert!(shown.contains(&format!("attributes::outcomes::parrot::{name}: test")), "{name}: {shown}");
    }
}

#[test]
fn ambiguous_or_missing_fixtures_fail_tests() {
    for (test, words) in [
        ("attributes::outcomes::parrot::fixtures::several", "has several fixtures of type"),
        ("attributes::outcomes::parrot::fixtures::missing", "no enclosing group has a fixture of type"),
    ] {
        let output = run_tests(test);
        let shown = normalized_output(&output);
        assert!(!output.status.success() && shown.contains(words), "{shown}");
    }
}

#[test]
fn passing_tests_print_nothing() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attributes::outcomes::parrot::repeats"])
        .output()
        .unwrap();
    let shown = normalized_output(&output);
    assert!(output.status.success() && !shown.contains("Parrot"), "{shown}");
}
