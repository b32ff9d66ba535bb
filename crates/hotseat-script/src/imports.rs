//! Finds import specifiers and words in source text, without parsing it.

use std::ops::Range;

/// Returns the location of the specifier `name`.
pub(crate) fn find_specifier(text: &str, name: &str) -> Option<Range<usize>> {
    specifiers(text).find(|(specifier, _)| *specifier == name).map(|(_, span)| span)
}

/// Returns all import specifiers: strings after `from`, `import` or `import(`.
pub(crate) fn specifiers(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    // The last three words or characters of the code.
    let mut before = [""; 3];
    std::iter::from_fn(move || {
        loop {
            let SourcePiece { kind, span } = next_piece(text, at)?;
            at = span.end;
            match kind {
                PieceKind::Comment => {}
                PieceKind::Code => before = [before[1], before[2], &text[span]],
                PieceKind::Quoted => {
                    let is_specifier = names_module(before);
                    before = [before[1], before[2], ""];
                    if is_specifier {
                        return Some((&text[span.start + 1..span.end - 1], span));
                    }
                }
            }
        }
    })
}

/// True if a quoted text after these words or characters of the code names a module. `.` before the word makes it the name of
/// a member.
fn names_module(before: [&str; 3]) -> bool {
    match before {
        [member, "from" | "import", "("] => member != ".",
        [_, member, "from" | "import"] => member != ".",
        _ => false,
    }
}

/// Returns the words and other characters of the code, without white space, comments and quoted texts.
pub(crate) fn code_words(text: &str) -> impl Iterator<Item = &str> {
    code_spans(text).map(|span| &text[span])
}

/// Returns the spans of the words and other characters of the code.
pub(crate) fn code_spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let piece = next_piece(text, at)?;
            at = piece.span.end;
            if piece.kind == PieceKind::Code {
                return Some(piece.span);
            }
        }
    })
}

/// A piece of source text.
struct SourcePiece {
    kind: PieceKind,
    span: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Comment,
    Quoted,
    Code,
}

/// Returns the comment, quoted text, word or other character at or after `at`.
fn next_piece(text: &str, at: usize) -> Option<SourcePiece> {
    let at = text.len() - text[at..].trim_start().len();
    let rest = &text[at..];
    let first = rest.chars().next()?;
    let (kind, length) = if rest.starts_with("//") {
        (PieceKind::Comment, rest.find('\n').unwrap_or(rest.len()))
    } else if let Some(comment) = rest.strip_prefix("/*") {
        (PieceKind::Comment, comment.find("*/").map_or(rest.len(), |end| end + "/**/".len()))
    } else if let Some(length) = quoted_length(rest) {
        (PieceKind::Quoted, length)
    } else if first == '`' {
        // Not closed, so nothing after it is code.
        (PieceKind::Comment, rest.len())
    } else if is_word_character(first) {
        (PieceKind::Code, rest.find(|c| !is_word_character(c)).unwrap_or(rest.len()))
    } else {
        (PieceKind::Code, first.len_utf8())
    };
    Some(SourcePiece { kind, span: at..at + length })
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Returns the length of a quoted text at the start of `rest`. A quote that is not closed on its line belongs to, for
/// example, a regular expression.
fn quoted_length(rest: &str) -> Option<usize> {
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' if quote != '`' => return None,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}
