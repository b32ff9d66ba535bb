//! The file `.env` beside the project file: variables for the project and its processes.
//!
//! The reader is small on purpose: it expands nothing, so a value is exactly what is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::cases::Environment;
use hotseat_document::{Diagnostic, SourceSpan, SourceText, read_file, source_from_bytes};

/// Name of the file.
pub const ENV_FILE: &str = ".env";
/// Maximum size of the file.
const MAX_ENV_FILE_BYTES: u64 = 1_000_000;
/// Maximum number of variables.
const MAX_VARIABLES: usize = 10_000;
/// Maximum length of numbers that are not redacted, such as ports.
const MAX_PLAIN_DIGITS: usize = 5;

/// Variables of a `.env` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    variables: BTreeMap<String, String>,
}

impl EnvFile {
    /// Reads the file in a folder, displayed as `shown`. `None` if there is no such file; a folder of this
    /// name is ignored. Fails if the file cannot be read or is malformed, also if it is a pipe or a link that leads
    /// nowhere. The diagnostic has the location but never the text.
    pub fn read(folder: &Path, shown: &str) -> Result<Option<EnvFile>, Diagnostic> {
        let path = folder.join(ENV_FILE);
        let unreadable = |words: String| Diagnostic::new(format!("cannot read {shown}: {words}"));
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Ok(None),
            Ok(metadata) if metadata.len() > MAX_ENV_FILE_BYTES => {
                return Err(unreadable(format!("it is larger than {MAX_ENV_FILE_BYTES} bytes")));
            }
            Ok(_) => {}
            Err(_) if path.symlink_metadata().is_err() => return Ok(None),
            // A link that leads nowhere.
            Err(error) => {
                return Err(unreadable(error.to_string()).help("correct the link, or give `--no-env-file`"));
            }
        }
        let bytes = read_file(&path).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(shown, error.into_bytes()))?;
        EnvFile::parse(&text, shown).map(Some)
    }

    /// Parses the text of a file, displayed as `shown`. Fails if it is malformed.
    pub fn parse(text: &str, shown: &str) -> Result<EnvFile, Diagnostic> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut reader = EnvReader { characters: text.chars().collect(), next: 0, line: 1, column: 1, shown };
        let mut variables = BTreeMap::new();
        while let Some((name, value)) = reader.variable()? {
            variables.insert(name, value);
            if variables.len() > MAX_VARIABLES {
                return Err(reader.mistake(&format!("more than {MAX_VARIABLES} variables")));
            }
        }
        Ok(EnvFile { variables })
    }

    /// Returns an environment with the variables of the file that are not set in it.
    pub fn merge_into(&self, environment: &Environment) -> Environment {
        let mut merged = self.variables.clone();
        merged.extend(environment.iter().map(|(name, value)| (name.clone(), value.clone())));
        Arc::new(merged)
    }

    /// Names of the variables.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Names and values to redact, as `secrets` of the project file names them. Short numbers are left out: they occur
    /// everywhere.
    pub fn secrets(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let is_plain =
            |value: &str| value.len() <= MAX_PLAIN_DIGITS && value.bytes().all(|byte| byte.is_ascii_digit());
        let secrets = self.variables.iter().filter(move |(_, value)| !is_plain(value));
        secrets.map(|(name, value)| (format!("ENV.{name}"), value.clone()))
    }
}

/// Reads variables one after the other.
struct EnvReader<'a> {
    characters: Vec<char>,
    next: usize,
    line: u32,
    column: u32,
    shown: &'a str,
}

impl EnvReader<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.next).copied()
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.next += 1;
        match character {
            '\n' => (self.line, self.column) = (self.line.saturating_add(1), 1),
            _ => self.column = self.column.saturating_add(1),
        }
        Some(character)
    }

    /// Diagnostic at the current position. It has no source text, since that may be secret.
    fn mistake(&self, words: &str) -> Diagnostic {
        let source = SourceText::starting_at(self.shown, "", self.line, self.column);
        Diagnostic::new(words).at(SourceSpan::new(&source, 0..0))
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|next| matches!(next, ' ' | '\t' | '\r')) {
            self.advance();
        }
    }

    /// Skips the rest of the line if it is empty or a comment.
    fn end_line(&mut self) -> Result<(), Diagnostic> {
        self.skip_spaces();
        match self.peek() {
            Some('#') => {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.advance();
                }
            }
            Some('\n') | None => {}
            Some(_) => return Err(self.mistake("unexpected text after the closing quote")),
        }
        self.advance();
        Ok(())
    }

    /// Reads the next variable, if there is one.
    fn variable(&mut self) -> Result<Option<(String, String)>, Diagnostic> {
        loop {
            self.skip_spaces();
            match self.peek() {
                None => return Ok(None),
                Some('#' | '\n') => self.end_line()?,
                Some(_) => break,
            }
        }
        let mut name = self.name();
        if name == "export" && self.peek().is_some_and(|next| matches!(next, ' ' | '\t')) {
            self.skip_spaces();
            name = self.name();
        }
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(self
                .mistake("expected the name of a variable")
                .help("write `NAME=value`; a comment begins with `#`"));
        }
        self.skip_spaces();
        if self.peek() != Some('=') {
            return Err(self.mistake("expected `=` after the name of the variable"));
        }
        self.advance();
        self.skip_spaces();
        let value = match self.peek() {
            Some('\'') => self.single_quoted()?,
            Some('"') => self.double_quoted()?,
            _ => return Ok(Some((name, self.unquoted()))),
        };
        self.end_line()?;
        Ok(Some((name, value)))
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(next) = self.peek().filter(|next| next.is_ascii_alphanumeric() || *next == '_') {
            name.push(next);
            self.advance();
        }
        name
    }

    /// Reads to the end of the line, or to a `#` after a space.
    fn unquoted(&mut self) -> String {
        let mut value = String::new();
        while let Some(next) = self.advance() {
            match next {
                '\n' => break,
                '#' if value.is_empty() || value.ends_with([' ', '\t']) => {
                    while self.advance().is_some_and(|next| next != '\n') {}
                    break;
                }
                next => value.push(next),
            }
        }
        value.trim_end().to_string()
    }

    fn single_quoted(&mut self) -> Result<String, Diagnostic> {
        let open = self.mistake("this quote is not closed");
        self.advance();
        let mut value = String::new();
        loop {
            match self.advance() {
                Some('\'') => return Ok(value),
                Some(next) => value.push(next),
                None => return Err(open),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<String, Diagnostic> {
        let open = self.mistake("this quote is not closed");
        self.advance();
        let mut value = String::new();
        loop {
            let unknown = self.mistake("unknown escape").help("use `\\\\` for a backslash, or single quotes");
            match self.advance() {
                Some('"') => return Ok(value),
                Some('\\') => value.push(match self.advance() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(plain @ ('"' | '\\' | '$')) => plain,
                    Some(_) => return Err(unknown),
                    None => return Err(open),
                }),
                Some(next) => value.push(next),
                None => return Err(open),
            }
        }
    }
}

/// Error for a file that is not UTF-8, without its text.
fn not_utf8(shown: &str, bytes: Vec<u8>) -> Diagnostic {
    let found = source_from_bytes(shown, bytes).err().map(|found| *found);
    let found = found.unwrap_or_else(|| Diagnostic::new("this is not UTF-8"));
    let place = found.place.as_ref().map(|place| {
        let source = SourceText::starting_at(shown, "", place.line(), place.column());
        SourceSpan::new(&source, 0..0)
    });
    Diagnostic { place, ..found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotseat_targets::recorder::SecretRedactor;

    #[test]
    fn values_are_what_is_written() {
        let text = "\u{FEFF}# comment\r\n\nA=one two  # comment\r\n  export B = 'a #b $A\nnext' # c\nC=\"x\\ty\\\"\\$(z)\\n\"\nD=\nE=a#b\nF=$(rm -rf /)${A}`x`\nG=#nothing\nA2=\"\"\nA=again";
        let file = EnvFile::parse(text, ".env").unwrap();
        let found: Vec<(&str, &str)> =
            file.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("A", "again"),
                ("A2", ""),
                ("B", "a #b $A\nnext"),
                ("C", "x\ty\"$(z)\n"),
                ("D", ""),
                ("E", "a#b"),
                ("F", "$(rm -rf /)${A}`x`"),
                ("G", ""),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_place_and_no_text() {
        for (text, place, words) in [
            ("A=1\nB C=sekrit", ".env:2:3", "expected `=` after the name of the variable"),
            ("A=1\n =sekrit", ".env:2:2", "expected the name of a variable"),
            ("9A=sekrit", ".env:1:3", "expected the name of a variable"),
            ("\n\nA='sekrit", ".env:3:3", "this quote is not closed"),
            ("A=\"sekrit\nB=2", ".env:1:3", "this quote is not closed"),
            ("A='x' sekrit", ".env:1:7", "unexpected text after the closing quote"),
            ("A=\"C:\\Users\"", ".env:1:6", "unknown escape"),
        ] {
            let mistake = EnvFile::parse(text, ".env").unwrap_err();
            let found = mistake.place.as_ref().map(ToString::to_string);
            assert_eq!((found.as_deref(), &*mistake.message), (Some(place), words), "{text}");
            let mut all = hotseat_document::Diagnostics::new();
            all.push(mistake);
            assert!(!all.render(false, 100).contains("sekrit"), "{text}");
        }
    }

    #[test]
    fn the_environment_wins_and_plain_values_are_not_secret() {
        let file = EnvFile::parse("A=file\nB=file\nPORT=8801\nDEBUG=True\nPIN=123456", ".env").unwrap();
        let real: Environment = Arc::new([("A".to_string(), String::new())].into_iter().collect());
        let merged = file.merge_into(&real);
        assert_eq!((merged["A"].as_str(), merged["B"].as_str()), ("", "file"));
        let redactor = SecretRedactor::new(file.secrets());
        let is_secret =
            ["A", "B", "PORT", "DEBUG", "PIN"].map(|name| redactor.has_secret(&format!("ENV.{name}")));
        assert_eq!(is_secret, [true, true, false, false, true]);
    }
}
