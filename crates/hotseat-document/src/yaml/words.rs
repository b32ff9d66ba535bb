//! What the YAML parser says, in words for people who write test cases.

use std::ops::Range;

/// A syntax error: what is wrong, what to do about it, and where.
pub(super) struct SyntaxError {
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
    pub(super) span: Range<usize>,
}

/// Puts what the parser said about `offset` into other words.
pub(super) fn syntax_error(said: &str, text: &str, offset: usize) -> SyntaxError {
    // Behind the last line there is nothing to point at.
    let offset = offset.min(text.trim_end_matches([' ', '\t', '\r', '\n']).len());
    let (message, help) = words(said);
    let span = match said {
        UNKNOWN_ESCAPE => unknown_escape(text, offset),
        _ => offset..offset,
    };
    SyntaxError {
        message: message.map_or_else(|| format!("this is not valid YAML: {said}"), str::to_owned),
        help,
        span,
    }
}

/// What the parser says of tabs between a colon and its value.
pub(super) const TABS_BEHIND_COLON: &str = "':' must be followed by a valid YAML whitespace";

const UNKNOWN_ESCAPE: &str = "while parsing a quoted scalar, found unknown escape character";

/// The first escape behind `offset` that YAML does not have.
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

fn words(said: &str) -> (Option<&'static str>, Option<&'static str>) {
    let (message, help) = match said {
        UNKNOWN_ESCAPE => (
            "this escape is not known in double quotes",
            "in single quotes a backslash stands for itself: '\\d+'",
        ),
        "while parsing a quoted scalar, did not find expected hexadecimal number"
        | "while parsing a quoted scalar, found invalid Unicode character escape code" => (
            "this text holds an escape that names no character",
            "`\\x`, `\\u` and `\\U` are followed by 2, 4 and 8 hexadecimal digits; write other characters as they are",
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
            "a quoted text that goes on in the next line is indented there",
        ),
        "invalid trailing content after double-quoted scalar" => (
            "something stands behind the closing quote",
            "a quote within a text is written \\\" in double quotes and '' in single quotes",
        ),
        "mapping values are not allowed in this context" => (
            "a `:` is not allowed here",
            "a text that holds `: ` is written in quotes; a mapping below a key begins on its own line",
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
            "the text of a block begins on the line below",
            "a text that begins with `|` or `>` is written in quotes",
        ),
        "comments must be separated from other tokens by whitespace" => {
            ("expected a space before `#`", "a text that holds `#` is written in quotes")
        }
        "a byte order mark must not appear inside a document" => {
            return (Some("a byte order mark stands in the middle of the document"), None);
        }
        "simple key expected"
        | "simple key expect ':'"
        | "while parsing a block mapping, did not find expected key"
        | "mapping keys are not allowed in this context" => (
            "expected `key: value` here",
            "the keys of a mapping stand in the same column, each followed by `:` and a space",
        ),
        "while parsing a block collection, did not find expected '-' indicator"
        | "block sequence entries are not allowed in this context" => (
            "a list entry is not allowed here, or one is missing",
            "the entries of a list stand in the same column, each with `- ` before it",
        ),
        "invalid indentation"
        | "invalid indentation for anchor"
        | "did not find expected <document start>"
        | "wrongly indented line in block scalar" => (
            "the indentation of this line fits nothing above it",
            "what belongs together stands in the same column",
        ),
        TABS_BEHIND_COLON | "'-' must be followed by a valid YAML whitespace" => {
            ("a tab cannot stand here", "use spaces")
        }
        "tab cannot be used as indentation"
        | "tabs disallowed in this context"
        | "tabs disallowed within this context (block indentation)"
        | "a block scalar content cannot start with a tab"
        | "while scanning a plain scalar, found a tab" => {
            ("a tab cannot be used for indentation", "use spaces")
        }
        "while parsing a flow mapping, did not find expected ',' or '}'" => {
            ("expected `,` or `}` here", "a text that holds `,`, `{`, `}`, `[` or `]` is written in quotes")
        }
        "while parsing a flow sequence, expected ',' or ']'" => {
            ("expected `,` or `]` here", "a text that holds `,`, `{`, `}`, `[` or `]` is written in quotes")
        }
        "while parsing a node, did not find expected node content" => {
            return (Some("expected a value here"), None);
        }
        "misplaced bracket" => {
            ("this bracket was not opened", "a text that begins with a bracket is written in quotes")
        }
        "recursion limit exceeded" => return (Some(TOO_DEEP), None),
        "while parsing node, found unknown anchor" => (
            "this alias names an anchor that is not defined above it",
            "a text that begins with `*` is written in quotes",
        ),
        "comment intercepting the multiline text" => (
            "a comment cuts this text in two",
            "a text over several lines is written in quotes or below `|`, without comments in it",
        ),
        "found unprintable character" => {
            return (Some("a character that cannot be printed is not allowed here"), None);
        }
        "unexpected character: `%'" | "unexpected character: `@'" | "unexpected character: ``'" => {
            ("a plain text cannot begin with this character", "write the text in quotes")
        }
        "the handle wasn't declared" => return (Some("the prefix of this tag is not declared"), None),
        _ => return (None, None),
    };
    (Some(message), Some(help))
}

/// Said of a document that is nested more deeply than is read.
pub(super) const TOO_DEEP: &str = "this is nested too deeply";
