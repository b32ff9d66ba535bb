//! Whatever stands in a suite, it is read as cases or refused with words.

#![no_main]

use std::collections::BTreeMap;

use hotseat::cases::{Case, Decoding, Inherited};
use hotseat::document::yaml;
use hotseat::session::Redactor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let environment = BTreeMap::from([("HOME".to_string(), "/home/user".to_string())]);
    let (inherited, redactor) = (Inherited::default(), Redactor::default());
    let decoding = Decoding { inherited: &inherited, environment: &environment, redactor: &redactor };
    for document in yaml::documents("fuzz.test.yaml", input) {
        let read = document
            .map_err(Into::into)
            .and_then(|source| Case::read(&source, yaml::parse, decoding));
        match read {
            Ok(case) => assert!(!case.turns.is_empty(), "a case without turns asserts nothing"),
            Err(mistakes) => {
                mistakes.into_iter().for_each(|mistake| assert!(!mistake.to_string().is_empty()))
            }
        }
    }
});
