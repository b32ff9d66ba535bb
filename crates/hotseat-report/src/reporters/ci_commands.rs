//! Neutralises commands of CI servers in output. Agents and models must not be able to issue such commands.
//!
//! `::name::` is a command of GitHub, Gitea and Forgejo at the start of a line, also after white space.
//! `##[name]` and `##vso[name]` are commands of Azure Pipelines and GitHub, and `##teamcity[name]` of
//! TeamCity, anywhere in a line. The markers of GitLab, Travis and Buildkite need control characters, which
//! are always replaced before output.

use std::io::{self, Write};

use hotseat_document::visible_char;

/// Format of the output, which determines how commands are neutralised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuardedFormat {
    /// Text: a space is inserted.
    Text,
    /// JSON: `#` is escaped, so values stay the same. So are characters that control a terminal, reorder text or end a line.
    Json,
}

/// Writer that neutralises CI commands. Input may be split at any byte; nothing is buffered.
#[derive(Debug)]
pub struct CommandGuard<W> {
    out: W,
    format: GuardedFormat,
    /// True if this line has only white space and colons so far.
    at_line_start: bool,
    /// Number of colons at the start of the line.
    colons: usize,
    /// Last written byte.
    last: u8,
    /// Byte before the last one.
    before_last: u8,
    /// Start of a character of JSON, as far as it has arrived.
    held: Vec<u8>,
}

impl<W> CommandGuard<W> {
    /// Creates a guard for text at the start of a line.
    pub fn text(out: W) -> Self {
        CommandGuard {
            out,
            format: GuardedFormat::Text,
            at_line_start: true,
            colons: 0,
            last: b'\n',
            before_last: b'\n',
            held: Vec::new(),
        }
    }

    /// Creates a guard for JSON at the start of a line.
    pub fn json(out: W) -> Self {
        CommandGuard { format: GuardedFormat::Json, ..CommandGuard::text(out) }
    }

    /// Writes a byte, with an inserted space or an escape if needed.
    fn push(&mut self, byte: u8, guarded: &mut Vec<u8>) {
        let is_second_hash = byte == b'#' && self.last == b'#';
        let follows_hashes = self.last == b'#' && self.before_last == b'#';
        // Source excerpts start with three colons, which are not a command.
        let follows_colons = self.at_line_start && self.colons == 2 && self.last == b':';
        match self.format {
            GuardedFormat::Json if is_second_hash => guarded.extend(br"\u0023"),
            GuardedFormat::Text if follows_hashes && (byte == b'[' || byte.is_ascii_alphabetic()) => {
                guarded.extend([b' ', byte]);
            }
            GuardedFormat::Text if follows_colons && byte != b':' && !byte.is_ascii_whitespace() => {
                guarded.extend([b' ', byte]);
            }
            GuardedFormat::Json if !byte.is_ascii() => self.push_character(byte, guarded),
            GuardedFormat::Json | GuardedFormat::Text => guarded.push(byte),
        }
        match byte {
            b'\n' | b'\r' => (self.at_line_start, self.colons) = (true, 0),
            b':' => self.colons += 1,
            // Treat non-ASCII white space like other white space.
            _ => self.at_line_start &= self.colons == 0 && (byte.is_ascii_whitespace() || !byte.is_ascii()),
        }
        (self.before_last, self.last) = (self.last, byte);
    }

    /// Writes a byte of a character of JSON that is not ASCII, once the character is whole. Characters that control a terminal,
    /// reorder text or separate lines are escaped.
    fn push_character(&mut self, byte: u8, guarded: &mut Vec<u8>) {
        self.held.push(byte);
        match str::from_utf8(&self.held) {
            Ok(whole) if whole.chars().all(|character| visible_char(character) == character) => {
                guarded.append(&mut self.held);
            }
            Ok(whole) => {
                let escaped: String = whole.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                guarded.extend(escaped.into_bytes());
                self.held.clear();
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => guarded.append(&mut self.held),
        }
    }
}

impl<W: Write> Write for CommandGuard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = || self.held.is_empty() && bytes.is_ascii() && !bytes.contains(&b'#');
        if let (GuardedFormat::Json, Some(&last)) = (self.format, bytes.last())
            && is_plain()
        {
            // Only `#` before `#` counts in JSON.
            self.last = last;
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut guarded = Vec::with_capacity(bytes.len() + 8);
        bytes.iter().for_each(|&byte| self.push(byte, &mut guarded));
        self.out.write_all(&guarded)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn guarded(text: &str) -> String {
        let mut guard = CommandGuard::text(Vec::new());
        guard.write_all(text.as_bytes()).expect("memory takes everything");
        String::from_utf8(guard.out).expect("only ASCII is inserted")
    }

    #[test]
    fn neutralises_commands() {
        for (text, harmless) in [
            ("a ##[error]b", "a ## [error]b"),
            ("####[group]", "#### [group]"),
            ("##vso[task.setvariable variable=x]y", "## vso[task.setvariable variable=x]y"),
            ("x ##teamcity[buildStop]", "x ## teamcity[buildStop]"),
            (" \t::error::a\n::b", " \t:: error::a\n:: b"),
            (" ::: a.yaml:1:2", " ::: a.yaml:1:2"),
            ("\u{3000}::error::a", "\u{3000}:: error::a"),
            ("a::b c ::d # 1 ## 2", "a::b c ::d # 1 ## 2"),
        ] {
            assert_eq!(guarded(text), harmless);
        }
    }

    proptest! {
        #[test]
        fn no_command_gets_through_however_it_is_cut(
            pieces in prop::collection::vec("(##|#|:|::|\\[|vso|teamcity|error|\n|\r| |\u{e9}){0,6}", 0..8),
        ) {
            let mut guard = CommandGuard::text(Vec::new());
            for piece in &pieces {
                guard.write_all(piece.as_bytes()).expect("memory takes everything");
            }
            let text = String::from_utf8(guard.out).expect("only ASCII is inserted");
            prop_assert_eq!(&text, &guarded(&pieces.concat()));
            for line in text.split(['\n', '\r']) {
                let command = line.trim_start().strip_prefix("::").and_then(|rest| rest.chars().next());
                prop_assert!(command.is_none_or(|first| first == ':' || first.is_whitespace()), "{line:?}");
                for (place, _) in line.match_indices("##") {
                    let next = line[place + 2..].chars().next();
                    prop_assert!(!next.is_some_and(|next| next == '[' || next.is_ascii_alphabetic()), "{line:?}");
                }
            }
        }

        #[test]
        fn json_keeps_its_values(
            text in "(#|\\[|vso|\\\\|\"|\n|a|[\u{84}-\u{a1}\u{2027}-\u{202a}\u{2066}\u{e0041}é👩]){0,12}",
            size in 1_usize..9,
        ) {
            let mut guard = CommandGuard::json(Vec::new());
            let value = json!({ &text: [&text] });
            for piece in value.to_string().as_bytes().chunks(size) {
                guard.write_all(piece).expect("memory takes everything");
            }
            let written = String::from_utf8(guard.out).expect("only ASCII is inserted");
            prop_assert!(!written.contains("##"), "{written}");
            prop_assert!(written.chars().all(|character| visible_char(character) == character), "{written}");
            prop_assert_eq!(serde_json::from_str::<Value>(&written).expect("still JSON"), value);
        }
    }
}
