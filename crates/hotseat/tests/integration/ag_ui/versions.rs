//! Protocol versions: the announced version is recorded and never rejected.

use serde_json::{Value, json};

use super::fixture::run_strict_turn;

/// A430, A431: no version means an older one and is not noted; a newer or malformed one is noted and the run
/// continues.
#[test]
fn protocol_version_is_recorded_and_unknown_one_noted() {
    for (version, recorded, known) in [
        (None, Value::Null, true),
        (Some(json!(null)), Value::Null, true),
        (Some(json!("1.0")), json!("1.0"), true),
        (Some(json!("1")), json!("1"), true),
        (Some(json!("1.7.3")), json!("1.7.3"), true),
        (Some(json!("0.0.58")), json!("0.0.58"), true),
        (Some(json!("2.7")), json!("2.7"), false),
        (Some(json!("abc")), json!("abc"), false),
        (Some(json!("1.x")), json!("1.x"), false),
        (Some(json!("")), json!(""), false),
        (Some(json!(3)), json!("3"), false),
    ] {
        let mut started = json!({"type": "RUN_STARTED"});
        if let Some(version) = &version {
            started["protocolVersion"] = version.clone();
        }
        let told = run_strict_turn(move |run| run.raw_event(started.clone()).text("Hi.").finished()).passed();
        assert_eq!(told.texts(), ["1 Hi."]);
        assert_eq!(
            told.events("agent.run.started")[0].get("protocolVersion").cloned().unwrap_or_default(),
            recorded
        );
        match known {
            true => drop(told.assert_no_notes()),
            false => drop(told.assert_note("unknown protocol version")),
        }
    }
}
