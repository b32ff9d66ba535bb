//! Translates JavaScript regular expressions into patterns.
//!
//! Tests in TypeScript write patterns in JavaScript syntax, but all patterns are matched by one engine.
//! Constructs with the same meaning are rewritten for that engine; constructs without an equivalent are
//! rejected, so no pattern silently changes its meaning.

use std::iter::Peekable;
use std::str::Chars;

/// A construct of JavaScript that has no equivalent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum JavascriptRegexError {
    #[error("the flag `y` has no meaning where a text is searched; `^` is the start of the text")]
    StickyFlag,
    #[error("`({start}…)` is {name}, which patterns do not support ({LINEAR_TIME_REASON})")]
    LookAround { start: &'static str, name: &'static str },
    #[error("`\\{0}` refers back to a group, which patterns do not support ({LINEAR_TIME_REASON})")]
    BackReference(char),
    #[error("a character class is not closed")]
    OpenClass,
    #[error("a `[` within a character class is written `\\[`")]
    NestedClass,
    #[error("`[]` matches no text")]
    EmptyClass,
    #[error("it ends with a backslash")]
    LastBackslash,
    #[error("`\\c` needs a letter")]
    ControlLetter,
    #[error("`\\x` needs two hexadecimal digits")]
    HexDigits,
    #[error("`\\u` needs four hexadecimal digits, or some in braces")]
    CodePoint,
    #[error("`\\u{0:X}` is half a character")]
    HalfCharacter(u32),
    #[error("`\\{0}{{…}}` needs the flag `u`")]
    UnicodeFlag(char),
    #[error("`\\{0}` is just the letter {0} in JavaScript; write it without the backslash")]
    PlainLetter(char),
}

/// Translates a JavaScript regular expression, given its source and flags.
///
/// # Errors
/// If a construct has no equivalent.
pub fn translate_javascript_regex(source: &str, flags: &str) -> Result<String, JavascriptRegexError> {
    if flags.contains('y') {
        return Err(JavascriptRegexError::StickyFlag);
    }
    let mut inline: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let mut translator = RegexTranslator {
        rest: source.chars().peekable(),
        out: String::new(),
        unicode: flags.contains(['u', 'v']),
        unicode_sets: flags.contains('v'),
        dot_matches_all: flags.contains('s'),
        matches_line_ends: flags.contains('m'),
    };
    translator.translate()?;
    let RegexTranslator { out, matches_line_ends, .. } = translator;
    if matches_line_ends {
        inline.push('R');
    }
    Ok(match inline.is_empty() {
        // A slash at the start is a character here, not the start of `/…/`.
        true if out.starts_with('/') => format!("\\{out}"),
        true => out,
        false => format!("(?{inline}){out}"),
    })
}

const LINEAR_TIME_REASON: &str = "patterns are matched in linear time, which rules it out";

struct RegexTranslator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    unicode: bool,
    /// True if character classes use the syntax of the flag `v`.
    unicode_sets: bool,
    /// True if `.` matches line ends.
    dot_matches_all: bool,
    /// True if the pattern depends on what ends a line: in JavaScript also a carriage return.
    matches_line_ends: bool,
}

/// One entry of a character class.
enum ClassEntry {
    /// One character, escaped for a class.
    Character(String),
    /// A predefined set such as `\d`, or an operation on sets.
    Set(String),
    /// An unescaped hyphen.
    Hyphen,
}

impl RegexTranslator<'_> {
    fn translate(&mut self) -> Result<(), JavascriptRegexError> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => match self.escape(false)? {
                    ClassEntry::Character(text) | ClassEntry::Set(text) => self.out.push_str(&text),
                    ClassEntry::Hyphen => self.out.push_str("\\-"),
                },
                '[' => self.class()?,
                '(' => self.group()?,
                '{' if !self.is_quantifier() => self.out.push_str("\\{"),
                other => {
                    self.matches_line_ends |= other == '.' && !self.dot_matches_all;
                    self.out.push(other);
                }
            }
        }
        Ok(())
    }

    /// Translates the start of a group, after its opening parenthesis.
    fn group(&mut self) -> Result<(), JavascriptRegexError> {
        let ahead: String = self.rest.clone().take(3).collect();
        for (start, name) in
            [("?=", "lookahead"), ("?!", "lookahead"), ("?<=", "lookbehind"), ("?<!", "lookbehind")]
        {
            if ahead.starts_with(start) {
                return Err(JavascriptRegexError::LookAround { start, name });
            }
        }
        // The flags of a group may include `m`.
        self.matches_line_ends |=
            ahead.starts_with('?') && !ahead.starts_with("?:") && !ahead.starts_with("?<");
        match ahead.starts_with("?<") {
            // The engine has no use for the name.
            true => {
                self.rest.by_ref().find(|character| *character == '>');
                self.out.push_str("(?:");
            }
            false => self.out.push('('),
        }
        Ok(())
    }

    /// Returns true if a quantifier follows the opening brace: `2}`, `2,}` or `2,3}`.
    fn is_quantifier(&self) -> bool {
        let inner: String = self.rest.clone().take_while(|character| *character != '}').collect();
        let closed = self.rest.clone().any(|character| character == '}');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        closed
            && match inner.split_once(',') {
                None => is_number(&inner),
                Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
            }
    }

    /// Translates a character class, after its opening bracket.
    fn class(&mut self) -> Result<(), JavascriptRegexError> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut entries = Vec::new();
        loop {
            match self.rest.next() {
                None => return Err(JavascriptRegexError::OpenClass),
                Some(']') => break,
                Some('\\') => entries.push(self.escape(true)?),
                Some(sign @ ('-' | '&')) if self.unicode_sets && self.rest.next_if_eq(&sign).is_some() => {
                    entries.push(ClassEntry::Set([sign, sign].iter().collect()));
                }
                Some('-') => entries.push(ClassEntry::Hyphen),
                Some('[') if self.unicode_sets => return Err(JavascriptRegexError::NestedClass),
                Some(character) if "[]\\^&~".contains(character) => {
                    entries.push(ClassEntry::Character(format!("\\{character}")));
                }
                Some(character) => entries.push(ClassEntry::Character(character.to_string())),
            }
        }
        match (entries.as_slice(), negated) {
            ([], true) => self.out.push_str("(?s:.)"),
            ([], false) => return Err(JavascriptRegexError::EmptyClass),
            (entries, negated) => {
                self.out.push_str(if negated { "[^" } else { "[" });
                write_entries(entries, &mut self.out);
                self.out.push(']');
            }
        }
        Ok(())
    }

    /// Translates an escape sequence, after its backslash.
    fn escape(&mut self, in_class: bool) -> Result<ClassEntry, JavascriptRegexError> {
        let Some(character) = self.rest.next() else { return Err(JavascriptRegexError::LastBackslash) };
        let code = |code: u32| ClassEntry::Character(format!("\\x{{{code:X}}}"));
        Ok(match character {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => ClassEntry::Set(format!("\\{character}")),
            'b' if in_class => code(8),
            'b' | 'B' if !in_class => ClassEntry::Set(format!("\\{character}")),
            'n' | 'r' | 't' | 'f' | 'v' => ClassEntry::Character(format!("\\{character}")),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => code(0),
            '0'..='9' | 'k' => return Err(JavascriptRegexError::BackReference(character)),
            'c' => match self.rest.next_if(char::is_ascii_alphabetic) {
                Some(letter) => code(u32::from(letter) % 32),
                None => return Err(JavascriptRegexError::ControlLetter),
            },
            'x' => code(self.digits(2).ok_or(JavascriptRegexError::HexDigits)?),
            'u' => code(self.code_point()?),
            'p' | 'P' if self.unicode => {
                let name: String = self.rest.by_ref().take_while(|character| *character != '}').collect();
                ClassEntry::Set(format!("\\{character}{name}}}"))
            }
            'p' | 'P' => return Err(JavascriptRegexError::UnicodeFlag(character)),
            letter if letter.is_ascii_alphabetic() => return Err(JavascriptRegexError::PlainLetter(letter)),
            other => ClassEntry::Character(escape_literal(other)),
        })
    }

    /// Reads a code point after `\u`: four digits, a surrogate pair of two times four digits, or a number in
    /// braces.
    fn code_point(&mut self) -> Result<u32, JavascriptRegexError> {
        if self.rest.next_if_eq(&'{').is_some() {
            let digits: String = self.rest.by_ref().take_while(|character| *character != '}').collect();
            return u32::from_str_radix(&digits, 16).map_err(|_| JavascriptRegexError::CodePoint);
        }
        let first = self.digits(4).ok_or(JavascriptRegexError::CodePoint)?;
        if !(0xD800..0xE000).contains(&first) {
            return Ok(first);
        }
        let half = || JavascriptRegexError::HalfCharacter(first);
        let second = match (self.rest.next(), self.rest.next()) {
            (Some('\\'), Some('u')) => self.digits(4).ok_or(JavascriptRegexError::CodePoint)?,
            _ => return Err(half()),
        };
        match ((0xD800..0xDC00).contains(&first), (0xDC00..0xE000).contains(&second)) {
            (true, true) => Ok(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)),
            _ => Err(half()),
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits: String = self.rest.by_ref().take(count).collect();
        let all = digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        all.then(|| u32::from_str_radix(&digits, 16).ok()).flatten()
    }
}

/// Writes the entries of a class. A hyphen between two characters is a range; other hyphens are literal.
fn write_entries(entries: &[ClassEntry], out: &mut String) {
    let is_set = |entry: &ClassEntry| matches!(entry, ClassEntry::Set(_));
    let text = |entry: &ClassEntry| match entry {
        ClassEntry::Character(text) | ClassEntry::Set(text) => text.clone(),
        ClassEntry::Hyphen => "\\-".to_string(),
    };
    let mut rest = entries;
    loop {
        rest = match rest {
            [] => return,
            [first, ClassEntry::Hyphen, last, rest @ ..] => {
                // The hyphen beside a set ends at the next entry, which starts no range.
                let hyphen = if is_set(first) || is_set(last) { "\\-" } else { "-" };
                out.push_str(&[&text(first), hyphen, &text(last)].concat());
                rest
            }
            [first, rest @ ..] => {
                out.push_str(&text(first));
                rest
            }
        };
    }
}

/// Escapes a character that stands for itself.
fn escape_literal(character: char) -> String {
    match character {
        '<' | '>' => character.to_string(),
        character if character.is_ascii_punctuation() => format!("\\{character}"),
        character => character.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    #[test]
    fn translates_shared_syntax() {
        for (source, flags, text, fits) in [
            (r"\bcafé\b", "", "a café here", true),
            (r"\bcafé\b", "u", "cafés", false),
            ("^blue$", "im", "a\nBLUE\nb", true),
            ("a.b", "s", "a\nb", true),
            (r"\/api\/v1", "", "/api/v1", true),
            (r"\/api\/i", "", "/api/i", true),
            (r"\/api\/i", "", "API", false),
            (r#"{"ok":true}"#, "", r#"{"ok":true}"#, true),
            ("a{2}", "", "aa", true),
            ("a{2}", "", "a{2}", false),
            ("a{,2}", "", "a{,2}", true),
            ("a{x", "", "a{x", true),
            ("[[a]", "", "[", true),
            ("[[a]]", "", "a]", true),
            ("[[a]]", "", "a", false),
            ("^[a&&b]$", "", "&", true),
            ("^[+--]$", "", ",", true),
            (r"^[\w-x]$", "", "-", true),
            // A hyphen beside a set is literal, and starts no range at the entry after it.
            (r"^[\d-a-z]$", "", "b", false),
            (r"^[\d-a-z]$", "", "-", true),
            (r"^[\d-a-z]$", "", "z", true),
            (r"^[a-\d-f]$", "", "b", false),
            (r"^[a-\d-f]$", "", "-", true),
            (r"^[\w--\d]+$", "v", "123", false),
            (r"^[\w--\d]+$", "v", "abc", true),
            (r"^[^\w--\d]+$", "v", "123", true),
            (r"^[\w&&\d]$", "v", "b", false),
            (r"^[\w&&\d]$", "v", "5", true),
            ("^[a-c]$", "v", "b", true),
            // A carriage return ends a line.
            ("^blue$", "m", "a\r\nblue\r\nb", true),
            ("^blue$", "", "blue\r\n", false),
            ("(?m:^blue$)", "", "blue\r\nb", true),
            ("a.b", "", "a\rb", false),
            ("a.b", "s", "a\rb", true),
            (r"\/a.b", "i", "/A\rB", false),
            ("^[a-]$", "", "-", true),
            ("^[~~]$", "", "~", true),
            ("^[^]$", "", "\n", true),
            (r"^[\b]$", "", "\u{8}", true),
            (r"\u0041\x42\cA\0", "", "AB\u{1}\0", true),
            (r"^\uD83D\uDE00$", "", "😀", true),
            (r"^\u{1F600}$", "u", "😀", true),
            (r"(?<year>\d{4})", "", "2026", true),
            (r"\<a\>", "", "<a>", true),
            (r"\p{Lu}", "u", "É", true),
            (r"[\]a]", "", "]", true),
            ("a]b", "", "a]b", true),
            ("(?i:a)b", "", "Ab", true),
            ("x", "gd", "x", true),
        ] {
            let pattern =
                translate_javascript_regex(source, flags).unwrap_or_else(|words| panic!("{source}: {words}"));
            let compiled =
                Pattern::compile(&pattern).unwrap_or_else(|words| panic!("{source}: {pattern}: {words}"));
            assert_eq!(compiled.is_match(text), fits, "/{source}/{flags} on {text:?}: {pattern}");
        }
    }

    #[test]
    fn rejects_javascript_only_syntax() {
        for (source, flags, words) in [
            ("(?=a)", "", "lookahead"),
            ("(?!a)", "", "lookahead"),
            ("(?<=a)", "", "lookbehind"),
            ("(?<!a)", "", "lookbehind"),
            (r"(a)\1", "", "refers back"),
            (r"(?<a>b)\k<a>", "", "refers back"),
            ("[]", "", "matches no text"),
            ("[]a]", "", "matches no text"),
            ("a", "y", "flag `y`"),
            (r"\Aab", "", "just the letter A"),
            (r"\zab", "", "just the letter z"),
            (r"\p{L}", "", "needs the flag `u`"),
            (r"\uD83D", "", "half a character"),
            (r"[[a]--[b]]", "v", r"`\[`"),
        ] {
            let refused = translate_javascript_regex(source, flags).expect_err(source).to_string();
            assert!(refused.contains(words), "/{source}/{flags}: {refused}");
        }
    }
}
