//! Text for humans: durations, and untrusted text made safe for display.

use std::borrow::Cow;
use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use hotseat_document::{SourceSpan, visible_char};
use hotseat_engine::run::Attempt;
pub use hotseat_trace::format_count;

/// Quotes a text as one word of a POSIX shell, if needed.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', "'\\''"))),
    }
}

/// Formats a duration, rounded as in reports: `180µs`, `340ms`, `2.7s`, `1.8m`.
pub fn format_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    let millis = (micros + 500) / 1000;
    match millis {
        _ if (1..1000).contains(&micros) => format!("{micros}µs"),
        0..1000 => format!("{millis}ms"),
        1000..59_950 => format!("{:.1}s", duration.as_secs_f64()),
        _ => format!("{:.1}m", duration.as_secs_f64() / 60.0),
    }
}

/// Rounds a rate to a multiple of `1 / steps`. A rate below `whole` never becomes `whole`, and one above 0 never becomes 0.
fn round_below(rate: f64, whole: f64, steps: f64) -> f64 {
    let rounded = (rate * steps).round() / steps;
    match () {
        () if rate <= 0.0 || rate >= whole => rounded,
        () => rounded.clamp(1.0 / steps, whole - 1.0 / steps),
    }
}

/// Rounds a fraction to a multiple of `1 / steps`. Values below 1 never become 1, and values above 0 never become 0.
pub fn round_fraction(part: f64, steps: f64) -> f64 {
    round_below(part, 1.0, steps)
}

/// Rounds a percentage to one decimal place. Values below 100 never become 100, and values above 0 never
/// become 0.
pub fn round_to_tenths(percent: f64) -> f64 {
    round_below(percent, 100.0, 10.0)
}

/// Formats a fraction in whole percent without the sign: `67`. Next to 0 and 100 it has one decimal place: `99.9`.
pub fn format_whole_percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent.round() {
        whole if (whole == 0.0 || whole == 100.0) && whole != percent => {
            format!("{:.1}", round_to_tenths(percent))
        }
        whole => format!("{whole}"),
    }
}

/// Formats a percentage: `97.5%`.
pub fn format_percent(percent: f64) -> String {
    format!("{:.1}%", round_to_tenths(percent))
}

/// Formats a cost with its currency, if that is known: `0.0123 EUR`. A small cost has two significant digits, since the price of
/// a single answer may be far below a cent: `0.000021`.
pub fn format_cost(cost: f64, currency: Option<&str>) -> String {
    let leading_zeros = if cost > 0.0 { (-cost.log10()).ceil().clamp(0.0, 20.0) as usize } else { 0 };
    let decimals = (leading_zeros + 1).max(4);
    match currency {
        Some(currency) => format!("{cost:.decimals$} {}", one_line(currency, 20)),
        None => format!("{cost:.decimals$}"),
    }
}

/// Maximum length of a shown source line, in characters. A longer one can be a whole case.
pub const MAX_LINE_CHARS: usize = 200;

/// Maximum number of bytes of a line for each of its columns.
const MAX_COLUMN_BYTES: usize = 16;

/// Returns true for printable ASCII: each byte takes one column and is shown as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns the display width of a text in columns.
pub fn columns(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.width() }
}

/// Joins the characters beside it into one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Selects the form of the character before it that has colors and takes two columns.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Returns the display width of a character before another one.
fn shown_columns(c: char, next: Option<char>) -> usize {
    match next {
        Some(EMOJI_SELECTOR) => String::from_iter([c, EMOJI_SELECTOR]).width(),
        _ => c.width().unwrap_or(0),
    }
}

/// Returns the characters of a text, each with the one after it.
fn with_next(text: &str) -> impl Iterator<Item = (char, Option<char>)> {
    text.chars().zip(text.chars().skip(1).map(Some).chain([None]))
}

/// Formats a text on one line of at most `width` columns, safe to print.
pub fn one_line(text: &str, width: usize) -> String {
    let text = text.trim();
    if text.len() <= width && is_plain(text) {
        return text.to_string();
    }
    let mut out = String::new();
    let mut used = 0;
    // Characters without a width are bounded as well.
    let mut characters = text.chars().filter(|c| *c != '\r').peekable();
    while let Some(c) = characters.next() {
        let shown = match c {
            '\n' => '⏎',
            '\t' => ' ',
            c => visible_char(c),
        };
        // One column is reserved for the ellipsis.
        let columns = shown_columns(shown, characters.peek().copied());
        let is_full = used + columns > width.saturating_sub(usize::from(characters.peek().is_some()));
        if is_full || out.len() > MAX_COLUMN_BYTES.saturating_mul(width.saturating_add(1)) {
            out.push('…');
            break;
        }
        used += columns;
        out.push(shown);
    }
    out
}

/// Formats the place of a call with its source line.
pub fn describe_call(call_site: &SourceSpan) -> String {
    let line = call_site.short_line(MAX_LINE_CHARS).map(|line| format!(": {}", line.text.trim()));
    one_line(&format!("{call_site}{}", line.unwrap_or_default()), 4000)
}

/// Formats the start of a text on one line of at most `width` columns, safe to print. White space is
/// collapsed, and truncation is marked by `...`.
pub fn preview(text: &str, width: usize) -> String {
    const CUT: &str = "...";
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        let room = MAX_COLUMN_BYTES.saturating_mul(width.saturating_add(1)).saturating_sub(shown.len());
        match word.len() <= room && is_plain(word) {
            true => shown.push_str(word),
            false => shown.extend(word.chars().take(room).map(visible_char)),
        }
        if room == 0 {
            break;
        }
    }
    let text = shown;
    if columns(&text) <= width {
        return text;
    }
    let room = width.saturating_sub(CUT.len());
    let mut used = 0;
    let begin = with_next(&text).take_while(|(c, next)| {
        used += shown_columns(*c, *next);
        used <= room
    });
    begin.map(|(c, _)| c).collect::<String>().trim_end().to_string() + CUT
}

/// Splits a text into lines that are safe to print.
pub fn safe_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.chars().map(|c| if c == '\t' { ' ' } else { visible_char(c) }).collect())
}

/// Shortens a text to its first line, which says what follows, and its last `max` lines.
pub fn last_lines(text: &str, max: usize) -> Cow<'_, str> {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len().checked_sub(max) {
        Some(from) if from > 1 => [&lines[..1], &["…"], &lines[from..]].concat().join("\n").into(),
        _ => text.into(),
    }
}

/// Returns the length of the escape sequence that a text begins with: `\n`, `\u{1b}` or `\u001b`. 0 if it begins with none.
fn escape_length(text: &str) -> usize {
    let Some(escaped) = text.strip_prefix('\\') else { return 0 };
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(code) = escaped.strip_prefix('u') else {
        return 1 + usize::from(escaped.starts_with(['n', 'r', 't', '0', '\\', '"', '\'']));
    };
    match (code.strip_prefix('{').and_then(|code| code.split_once('}')), code.get(..4)) {
        (Some((digits, _)), _) if digits.len() <= 6 && is_hex(digits) => "\\u{}".len() + digits.len(),
        (_, Some(digits)) if is_hex(digits) => "\\u".len() + digits.len(),
        _ => 1,
    }
}

/// Maximum number of bytes of a character with those that combine with it.
const MAX_PIECE_BYTES: usize = 64;

/// Returns the pieces of a text that a line break must not divide: escape sequences, and characters with those that combine
/// with them.
fn unbreakable_pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let mut end = escape_length(rest).max(first.len_utf8());
        let mut is_joined = false;
        for c in rest[end..].chars().take_while(|_| first != '\\') {
            if !is_joined && c.width() != Some(0) || end > MAX_PIECE_BYTES {
                break;
            }
            is_joined = c == ZERO_WIDTH_JOINER;
            end += c.len_utf8();
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Returns a piece, or its characters if it is wider than a line.
fn parts_within(piece: &str, width: usize) -> impl Iterator<Item = &str> {
    let is_whole = columns(piece) <= width;
    let length = move |c: char| if is_whole { piece.len() } else { c.len_utf8() };
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(length(rest.chars().next()?));
        rest = after;
        Some(part)
    })
}

/// Wraps a line to at most `rest` columns, and at most `first` columns in the first line. Lines break after
/// spaces and commas, otherwise when they are full. No break divides an escape sequence or an emoji that fits in a line.
pub fn wrap(line: &str, first: usize, rest: usize) -> Vec<String> {
    // A line has space for at least one wide character, otherwise wrapping would not end.
    let (mut room, rest) = (first.max(2), rest.max(2));
    let mut out = vec![String::new()];
    let mut used = 0;
    for piece in line.split_inclusive([' ', ',']) {
        let word = piece.trim_end().width();
        let mut next_line = used + word > room && word <= rest;
        for part in unbreakable_pieces(piece).flat_map(|part| parts_within(part, rest)) {
            let columns = columns(part);
            next_line |= used + columns > room;
            if next_line {
                // White space at the end of a line is invisible, and at the start of a line it is unwanted.
                if part == " " {
                    continue;
                }
                out.push(String::new());
                (used, room, next_line) = (0, rest, false);
            }
            used += columns;
            out.last_mut().expect("there is always a line").push_str(part);
        }
    }
    out.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    out
}

/// Names the written turns that were not sent, if there are any: `Turns 3-5: not run`. `noun` is `turn` or `Turn`.
pub fn not_run_turns(attempt: &Attempt, noun: &str) -> Option<String> {
    let numbers = attempt.turns_not_run();
    let last = numbers.clone().last()?;
    Some(match numbers.len() {
        1 => format!("{noun} {last}: not run"),
        _ => format!("{noun}s {}-{last}: not run", numbers.start),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_with_a_selector_take_two_columns() {
        let hearts = "❤\u{fe0f}".repeat(6);
        assert_eq!(columns(&hearts), 12);
        assert_eq!(columns(&one_line(&hearts, 8)), 7);
        assert_eq!(columns(&preview(&hearts, 9)), 9);
        assert!(wrap(&hearts, 4, 4).iter().all(|line| columns(line) == 4));
    }

    #[test]
    fn escape_sequences_and_joined_emoji_are_not_divided() {
        let family = "👩\u{200d}👩\u{200d}👧\u{200d}👦";
        for (line, width, expected) in [
            (r"abc\u{200d}def\nx", 10, &[r"abc", r"\u{200d}de", r"f\nx"][..]),
            (r"abcde\nf", 6, &["abcde", r"\nf"]),
            (r"ab\u001bcd", 6, &["ab", r"\u001b", "cd"]),
            (r"C:\users", 4, &[r"C:\u", "sers"]),
            (r"\u{10ffff}", 4, &[r"\u{1", "0fff", "f}"]),
            (&format!("abc{family}d"), 5, &[&format!("abc{family}"), "d"]),
            (&format!("abcd{family}"), 5, &["abcd", family]),
        ] {
            assert_eq!(wrap(line, width, width), expected, "{line}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, quoted) in [("a/b.yaml", "a/b.yaml"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(text), quoted);
        }
    }

    #[test]
    fn formats_durations() {
        for (millis, words) in [
            (0, "0ms"),
            (999, "999ms"),
            (1000, "1.0s"),
            (59_949, "59.9s"),
            (59_999, "1.0m"),
            (108_000, "1.8m"),
            (7_200_000, "120.0m"),
        ] {
            assert_eq!(format_duration(Duration::from_millis(millis)), words);
        }
        for (micros, words) in [(180, "180µs"), (4600, "5ms"), (4400, "4ms"), (999_600, "1.0s")] {
            assert_eq!(format_duration(Duration::from_micros(micros)), words);
        }
    }

    #[test]
    fn replaces_control_characters() {
        assert_eq!(one_line("a\x1b[31mred\x07\nb\u{202e}c", 80), "a␛[31mred␇⏎b\u{fffd}c");
        let shown: Vec<String> = safe_lines("a\x1b]0;x\x07\n\tb\rc").collect();
        assert_eq!(shown, ["a␛]0;x␇", " b␍c"]);
    }

    #[test]
    fn percentages_round_to_extremes_only_if_exact() {
        for (part, words) in
            [(0.0, "0.0%"), (0.01, "0.1%"), (97.54, "97.5%"), (99.96, "99.9%"), (100.0, "100.0%")]
        {
            assert_eq!(format_percent(part), words);
        }
        for (part, words) in [
            (0.0, "0"),
            (0.0001, "0.1"),
            (0.004, "0.4"),
            (0.005, "1"),
            (0.67, "67"),
            (0.9996, "99.9"),
            (1.0, "100"),
        ] {
            assert_eq!(format_whole_percent(part), words);
        }
        assert_eq!(
            [0.0, 1e-9, 0.12346, 0.99999, 1.0].map(|part| round_fraction(part, 1e4)),
            [0.0, 1e-4, 0.1235, 0.9999, 1.0]
        );
    }

    #[test]
    fn cuts_lines_to_width() {
        assert_eq!(one_line("你好世界", 8), "你好世界");
        assert_eq!(one_line("你好世界!", 8), "你好世…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("abcd", 3), "ab…");
    }

    #[test]
    fn cuts_previews_between_characters() {
        for (text, width, expected) in [
            ("  Hello,\n\tthere ", 20, "Hello, there"),
            ("The rapid development of cloud", 20, "The rapid develop..."),
            ("The rapid development", 12, "The rapid..."),
            ("人工智能和机器学习", 11, "人工智能..."),
            ("人工智能和机器学习", 18, "人工智能和机器学习"),
            ("a\u{1b}[31mb", 20, "a␛[31mb"),
            ("", 20, ""),
        ] {
            assert_eq!(preview(text, width), expected);
        }
    }

    #[test]
    fn wraps_lines_at_good_positions() {
        for (line, first, rest, expected) in [
            ("", 5, 5, &[""][..]),
            ("a b", 5, 5, &["a b"]),
            ("one two three", 7, 7, &["one two", "three"]),
            ("one two three", 3, 9, &["one", "two three"]),
            ("one  two", 4, 4, &["one", "two"]),
            (r#"{"a":1,"b":2}"#, 8, 8, &[r#"{"a":1,"#, r#""b":2}"#]),
            ("abcdefgh", 3, 3, &["abc", "def", "gh"]),
            ("x abcdefgh", 4, 4, &["x ab", "cdef", "gh"]),
            ("你好世界", 5, 4, &["你好", "世界"]),
            ("你好", 0, 0, &["你", "好"]),
            ("ends with a blank ", 9, 9, &["ends with", "a blank"]),
        ] {
            assert_eq!(wrap(line, first, rest), expected, "{line} in {first} and {rest}");
        }
    }
}
