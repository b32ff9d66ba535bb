//! Any judge answer is parsed in exactly the requested format, or rejected with a message.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match hotseat_engine::roles::read_judgement(&text) {
        Ok(value) => {
            assert!(value["satisfied"].is_boolean(), "{value}");
            assert!(value["reasoning"].as_str().is_some_and(|reasoning| !reasoning.trim().is_empty()), "{value}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
