//! Versions of the protocol: what is announced is recorded, and nobody is turned away for it.

use serde_json::{Value, json};

use super::talk::hears_strictly;

/// A430, A431: absent is older and quiet; newer or odd is noted, and the run goes on.
#[test]
fn the_version_is_recorded_and_what_is_unknown_is_noted() {
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
        let told = hears_strictly(move |run| run.raw_event(started.clone()).text("Hi.").finished()).passed();
        assert_eq!(told.texts(), ["1 Hi."]);
        assert_eq!(
            told.events("agent.run.started")[0].get("protocolVersion").cloned().unwrap_or_default(),
            recorded
        );
        match known {
            true => drop(told.quietly()),
            false => drop(told.noting("which is not known here")),
        }
    }
}
