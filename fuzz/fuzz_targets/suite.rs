//! Any suite is read as cases or rejected with a message.

#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotseat_engine::cases::{DecodeSettings, InheritedSettings, TestCase};
use hotseat_document::yaml;
use hotseat_targets::recorder::SecretRedactor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let environment = BTreeMap::from([("HOME".to_string(), "/home/user".to_string())]);
    let (inherited, redactor) = (InheritedSettings::default(), SecretRedactor::default());
    let (agents, shared) = (Arc::default(), Arc::default());
    let decoding = DecodeSettings {
        inherited: &inherited,
        agents: &agents,
        shared: &shared,
        root: Path::new("."),
        environment: &environment,
        redactor: &redactor,
        default_simulator: false,
    };
    for document in yaml::documents("fuzz.test.yaml", input) {
        let read = document
            .map_err(Into::into)
            .and_then(|source| TestCase::read(&source, yaml::parse, decoding));
        match read {
            Ok(case) => assert!(!case.id.is_empty(), "results are reported under the id"),
            Err(mistakes) => {
                mistakes.into_iter().for_each(|mistake| assert!(!mistake.to_string().is_empty()))
            }
        }
    }
});
