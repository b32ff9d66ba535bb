//! Whatever a judge answers, it is a judgement in just the form that was asked for, or refused with words.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match hotseat::roles::read_judgement(&text) {
        Ok(value) => {
            assert!(value["satisfied"].is_boolean(), "{value}");
            assert!(value["reasoning"].as_str().is_some_and(|reasoning| !reasoning.trim().is_empty()), "{value}");
        }
        Err(words) => assert!(!words.is_empty()),
    }
});
