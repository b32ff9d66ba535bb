//! Translates errors of the YAML parser into messages for authors of test cases.

use std::ops::Range;

use crate::stream::{NO_BREAK_SPACE, NO_BREAK_SPACE_ADVICE};

/// A syntax error with message, advice and location.
pub(super) struct YamlSyntaxError {
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
    pub(super) span: Range<usize>,
}

/// Translates the parser's error at `offset`.
pub(super) fn syntax_error(said: &str, text: &str, offset: usize) -> YamlSyntaxError {
    // Points at the last line instead of after it.
    let offset = offset.min(text.trim_end_matches([' ', '\t', '\r', '\n']).len());
    let (message, help) = translate(said);
    let line = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let indentation = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
    let (help, span) = match said {
        UNKNOWN_ESCAPE => (help, unknown_escape(text, offset)),
        _ if text[line + indentation..].starts_with(NO_BREAK_SPACE) => {
            (Some(NO_BREAK_SPACE_ADVICE), line + indentation..line + indentation)
        }
        _ => (help, offset..offset),
    };
    YamlSyntaxError {
        message: message.map_or_else(|| format!("this is not valid YAML: {said}"), str::to_owned),
        help,
        span,
    }
}

/// Parser message for tabs between a colon and its value.
pub(super) const TAB_AFTER_COLON: &str = "':' must be followed by a valid YAML whitespace";

const UNKNOWN_ESCAPE: &str = "while parsing a quoted scalar, found unknown escape character";

/// Returns the first unknown escape after `offset`.
fn unknown_escape(text: &str, offset: usize) -> Range<usize> {
    let mut characters = text[offset..].char_indices();
    while let Some((start, character)) = characters.next() {
        if character != '\\' {
            continue;
        }
        match characters.next() {
            Some((_, escaped)) if KNOWN_ESCAPES.contains(escaped) => {}
            Some((at, escaped)) => return offset + start..offset + at + escaped.len_utf8(),
            None => break,
        }
    }
    offset..offset
}

const KNOWN_ESCAPES: &str = "0abt\tnvfre \"/\\N_LPxuU\r\n";

fn translate(said: &str) -> (Option<&'static str>, Option<&'static str>) {
    let (message, help) = match said {
        UNKNOWN_ESCAPE => {
            ("unknown escape in double quotes", "use single quotes for literal backslashes: '\\d+'")
        }
        "while parsing a quoted scalar, did not find expected hexadecimal number"
        | "while parsing a quoted scalar, found invalid Unicode character escape code" => (
            "this escape is not a valid character",
            "`\\x`, `\\u` and `\\U` take 2, 4 and 8 hexadecimal digits; write a character that JSON escapes as a pair, \
             such as `\\ud83d\\ude00`, itself or as `\\U0001F600`",
        ),
        "while scanning a quoted scalar, found unexpected end of stream"
        | "while scanning a quoted scalar, found unexpected document indicator" => {
            return (Some("this quoted text has no closing quote"), None);
        }
        "invalid indentation in flow construct" => (
            "a bracket is still open here, and this line is not indented",
            "close the bracket, or indent the line",
        ),
        "invalid indentation in quoted scalar" => (
            "this quoted text has no closing quote, or its lines are not indented",
            "indent the continuation lines of a quoted text",
        ),
        "invalid trailing content after double-quoted scalar" => (
            "unexpected text after the closing quote",
            "write a quote as \\\" in double quotes and as '' in single quotes",
        ),
        "mapping values are not allowed in this context" => (
            "a `:` is not allowed here",
            "write text that contains `: ` in quotes; start a nested mapping on its own line",
        ),
        "illegal placement of ':' indicator" => {
            ("a `:` is not allowed here", "close the list above with `]`, or write the text in quotes")
        }
        "':' may not precede any of `[{` in flow mapping" => {
            return (Some("expected a space between `:` and the bracket"), None);
        }
        "\"-\" is only valid inside a block" | "plain scalar cannot start with '-' followed by ,[]{}" => {
            return (Some("within brackets, list entries are separated by commas and have no `-`"), None);
        }
        "while scanning a block scalar, did not find expected comment or line break" => (
            "the text of a block starts on the next line",
            "write text that starts with `|` or `>` in quotes",
        ),
        "comments must be separated from other tokens by whitespace" => {
            ("expected a space before `#`", "write text that contains `#` in quotes")
        }
        "a byte order mark must not appear inside a document" => {
            return (Some("unexpected byte order mark inside the document"), None);
        }
        "simple key expected"
        | "simple key expect ':'"
        | "while parsing a block mapping, did not find expected key"
        | "mapping keys are not allowed in this context" => (
            "expected `key: value` here",
            "align the keys of a mapping in one column, each followed by `:` and a space",
        ),
        "while parsing a block collection, did not find expected '-' indicator"
        | "block sequence entries are not allowed in this context" => (
            "a list entry is not allowed here, or one is missing",
            "align the entries of a list in one column, each after `- `",
        ),
        "while parsing a flow mapping, did not find expected ',' or '}'" => {
            ("expected `,` or `}` here", "write text that contains `,`, `{`, `}`, `[` or `]` in quotes")
        }
        "while parsing a flow sequence, expected ',' or ']'" => {
            ("expected `,` or `]` here", "write text that contains `,`, `{`, `}`, `[` or `]` in quotes")
        }
        "while parsing a node, did not find expected node content" => {
            return (Some("expected a value here"), None);
        }
        "misplaced bracket" => {
            ("this bracket was not opened", "write text that starts with a bracket in quotes")
        }
        "recursion limit exceeded" => return (Some(TOO_DEEP), None),
        "while parsing node, found unknown anchor" => (
            "this alias names an anchor that is not defined above it",
            "write text that starts with `*` in quotes",
        ),
        "comment intercepting the multiline text" => (
            "a comment interrupts this text",
            "write text of several lines in quotes or as a `|` block, without comments",
        ),
        "found unprintable character" => {
            return (Some("a control character is not allowed here"), None);
        }
        "unexpected character: `%'" | "unexpected character: `@'" | "unexpected character: ``'" => {
            ("unquoted text cannot start with this character", "write the text in quotes")
        }
        "the handle wasn't declared" => return (Some("the prefix of this tag is not declared"), None),
        _ => return translate_indentation(said),
    };
    (Some(message), Some(help))
}

/// Translates messages about indentation and tabs.
fn translate_indentation(said: &str) -> (Option<&'static str>, Option<&'static str>) {
    let (message, help) = match said {
        "invalid indentation"
        | "invalid indentation for anchor"
        | "did not find expected <document start>"
        | "wrongly indented line in block scalar" => (
            "the indentation of this line matches no line above it",
            "align keys and entries of the same level in one column",
        ),
        TAB_AFTER_COLON | "'-' must be followed by a valid YAML whitespace" => {
            ("a tab is not allowed here", "use spaces")
        }
        "tab cannot be used as indentation"
        | "tabs disallowed in this context"
        | "tabs disallowed within this context (block indentation)"
        | "a block scalar content cannot start with a tab"
        | "while scanning a plain scalar, found a tab" => {
            ("a tab cannot be used for indentation", "use spaces")
        }
        _ => return (None, None),
    };
    (Some(message), Some(help))
}

/// Message for a document that is nested too deeply.
pub(super) const TOO_DEEP: &str = "this is nested too deeply";
