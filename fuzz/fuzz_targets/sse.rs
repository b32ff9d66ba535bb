//! An event stream contains the same events for every split into portions.

#![no_main]

use hotseat_http::{EventError, SseDecoder};
use libfuzzer_sys::fuzz_target;

fn events<'a>(portions: impl Iterator<Item = &'a [u8]>) -> Result<(Vec<String>, Option<String>), EventError> {
    let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
    for portion in portions {
        decoder.feed(portion, |event| found.push(event.data.to_string()))?;
    }
    let unfinished = decoder.unfinished().map(|text| text.into_owned());
    Ok((found, unfinished))
}

// The first byte is the length of the portions.
fuzz_target!(|input: &[u8]| {
    let Some((&length, stream)) = input.split_first() else { return };
    let whole = events(std::iter::once(stream));
    assert_eq!(events(stream.chunks(1)), whole);
    assert_eq!(events(stream.chunks(usize::from(length).max(1))), whole);
});
