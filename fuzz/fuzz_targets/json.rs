//! Any JSON file gives the same values for every buffer size, and each value equals the one read by serde or
//! is rejected with a message and a location.

#![no_main]

use std::io::{BufRead, BufReader};

use hotseat_document::json;
use libfuzzer_sys::fuzz_target;

fn read(reader: impl BufRead) -> Vec<Result<(String, serde_json::Value), String>> {
    let values = json::values("fuzz.jsonl", reader, "cases");
    let read = values.map(|source| {
        let source = source.map_err(|mistake| mistake.to_string())?;
        match json::parse(&source) {
            Ok(node) => Ok((source.text.clone(), node.to_json())),
            Err(mistakes) => {
                assert!(!mistakes.is_empty() && mistakes.iter().all(|mistake| mistake.place.is_some()));
                Err(mistakes.render(false, 80))
            }
        }
    });
    read.collect()
}

fuzz_target!(|input: &[u8]| {
    let (portion, input) = input.split_first().unwrap_or((&0, &[]));
    let whole = read(input);
    assert_eq!(read(BufReader::with_capacity(usize::from(*portion) + 1, input)), whole);
    for (text, tree) in whole.into_iter().flatten() {
        if let Ok(known) = serde_json::from_str::<serde_json::Value>(&text) {
            assert_eq!(tree, known, "{text}");
        }
    }
});
