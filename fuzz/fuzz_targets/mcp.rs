//! Any bytes are a message of MCP or an error, and messages, recordings and definitions survive being written and read again.

#![no_main]

use hotseat_mcp::{Frame, McpRecording, TextCleaner, read_mock};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(frame) = Frame::parse(input) {
        let written = frame.to_json().to_string();
        assert_eq!(Frame::parse(written.as_bytes()).expect("a written message is a message"), frame);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(recording) = McpRecording::read(text) {
        let written = recording.write(&TextCleaner::default());
        assert_eq!(McpRecording::read(&written).expect("a written recording is a recording"), recording);
    }
    let _ = read_mock(text);
});
