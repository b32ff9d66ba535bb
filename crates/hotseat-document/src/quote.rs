//! Texts of agents in quotes, and what cannot be seen in them.

use std::borrow::Cow;

/// Joins the characters beside it into one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Selects the form of the character before it that has colors.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Quotes a text on one line. Quotes, control characters, and characters that reorder, hide or combine with text are escaped.
/// The parts of an emoji are kept: the selector after it, and the zero width joiner between emoji, which joins them into one.
pub fn quote(text: &str) -> String {
    let escape = |c: char, out: &mut String| match c {
        '\'' => out.push(c),
        _ => out.extend(c.escape_debug()),
    };
    format!("\"{}\"", escape_hidden(text, escape))
}

/// Escapes the same characters beyond ASCII as [`quote`], in the way of JSON: a JSON text keeps its value.
pub fn show_hidden(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char, out: &mut String| match is_hidden(c) {
        true => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        false => out.push(c),
    };
    Cow::Owned(escape_hidden(text, escape))
}

/// True for a character beyond ASCII that cannot be seen, or that combines with others.
pub fn is_hidden(c: char) -> bool {
    !c.is_ascii() && c.escape_debug().len() > 1
}

/// Escapes characters, except those that are parts of an emoji.
fn escape_hidden(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let is_part_of_emoji = match c {
            EMOJI_SELECTOR => out.ends_with(is_emoji),
            ZERO_WIDTH_JOINER => {
                let emoji = out.strip_suffix(EMOJI_SELECTOR).unwrap_or(&out);
                emoji.ends_with(is_emoji) && rest.as_str().starts_with(is_emoji)
            }
            _ => false,
        };
        match is_part_of_emoji {
            true => out.push(c),
            false => escape(c, &mut out),
        }
    }
    out
}

/// True for the characters of emoji that consist of several, with their skin tones, and for others of the same blocks.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests {
    use super::{quote, show_hidden};

    #[test]
    fn joined_emoji_stay_whole() {
        for emoji in [
            "👩\u{200d}👩\u{200d}👧",
            "🏳\u{fe0f}\u{200d}🌈",
            "👩🏽\u{200d}⚕\u{fe0f}",
            "🙂\u{200d}↔\u{fe0f}",
            "🐦\u{200d}⬛",
        ] {
            assert_eq!(quote(&format!("a {emoji}\n{emoji}")), format!("\"a {emoji}\\n{emoji}\""));
        }
    }

    #[test]
    fn other_invisible_characters_are_escaped() {
        for (text, quoted) in [
            ("pass\u{200d}word", r#""pass\u{200d}word""#),
            ("👩\u{200d}", r#""👩\u{200d}""#),
            ("👩\u{200d}\u{200d}👩", r#""👩\u{200d}\u{200d}👩""#),
            ("\u{200d}👩", r#""\u{200d}👩""#),
            ("👩\u{200b}👩\u{202e}\u{2066}\u{feff}", r#""👩\u{200b}👩\u{202e}\u{2066}\u{feff}""#),
            ("a\u{fe0f}b", r#""a\u{fe0f}b""#),
            ("❤\u{fe0f}\u{fe0f}", "\"❤\u{fe0f}\\u{fe0f}\""),
            (r"👩\u{200d}👩", r#""👩\\u{200d}👩""#),
            ("\u{1b}[2J\"", r#""\u{1b}[2J\"""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn hidden_characters_of_json_are_escaped_as_json() {
        assert_eq!(show_hidden("\"Zürich\"\n"), "\"Zürich\"\n");
        let value = serde_json::json!({"a": "e\u{301}\u{200b}\u{a0}\u{e0001}👩\u{200d}👩"});
        let shown = show_hidden(&value.to_string()).into_owned();
        assert_eq!(shown, "{\"a\":\"e\\u0301\\u200b\\u00a0\\udb40\\udc01👩\u{200d}👩\"}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
