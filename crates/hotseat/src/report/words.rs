//! How things are put to people: durations, and texts that others wrote.

use std::time::Duration;

use unicode_width::UnicodeWidthChar;

use crate::document::visible_char;

/// A duration as people read it: `340ms`, `2.7s`, `1m 05s`.
pub fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 if duration.as_micros() > 0 => format!("{}µs", duration.as_micros()),
        0..1000 => format!("{millis}ms"),
        1000..60_000 => format!("{:.1}s", duration.as_secs_f64()),
        _ => {
            let seconds = duration.as_secs();
            format!("{}m {:02}s", seconds / 60, seconds % 60)
        }
    }
}

/// A text on one line of at most `width` columns, harmless to print.
pub fn one_line(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    let mut characters = text.trim().chars().filter(|c| *c != '\r').peekable();
    while let Some(c) = characters.next() {
        let shown = match c {
            '\n' => '⏎',
            '\t' => ' ',
            c => visible_char(c),
        };
        // One column is kept for the mark.
        let columns = shown.width().unwrap_or(0);
        if used + columns > width.saturating_sub(usize::from(characters.peek().is_some())) {
            out.push('…');
            break;
        }
        used += columns;
        out.push(shown);
    }
    out
}

/// A text line by line, harmless to print.
pub fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.chars().map(|c| if c == '\t' { ' ' } else { visible_char(c) }).collect())
}

/// `1 case`, `2 cases`.
pub fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (millis, words) in [(0, "0ms"), (999, "999ms"), (1000, "1.0s"), (59_999, "60.0s"), (65_000, "1m 05s")] {
            assert_eq!(duration(Duration::from_millis(millis)), words);
        }
        assert_eq!(duration(Duration::from_micros(180)), "180µs");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(one_line("a\x1b[31mred\x07\nb\u{202e}c", 80), "a␛[31mred␇⏎b\u{fffd}c");
        let shown: Vec<String> = lines("a\x1b]0;x\x07\n\tb").collect();
        assert_eq!(shown, ["a␛]0;x␇", " b"]);
    }

    #[test]
    fn a_line_fits_its_columns() {
        assert_eq!(one_line("你好世界", 8), "你好世界");
        assert_eq!(one_line("你好世界!", 8), "你好世…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("abcd", 3), "ab…");
    }
}
