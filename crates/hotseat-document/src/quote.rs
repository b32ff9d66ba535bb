//! Texts of agents in quotes.

/// Joins the characters beside it into one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Selects the form of the character before it that has colors.
const EMOJI_SELECTOR: char = '\u{fe0f}';
/// Beginning of an escape in the output of [`Debug`](std::fmt::Debug).
const ESCAPE: &str = "\\u{";

/// Quotes a text on one line. Quotes, control characters, and characters that reorder, hide or combine with text are escaped.
/// The parts of an emoji are kept: the selector after it, and the zero width joiner between emoji, which joins them into one.
pub fn quote(text: &str) -> String {
    let quoted = format!("{text:?}");
    if !text.contains([ZERO_WIDTH_JOINER, EMOJI_SELECTOR]) {
        return quoted;
    }
    let mut out = String::with_capacity(quoted.len());
    let mut rest = quoted.as_str();
    while let Some((before, escape)) = rest.split_once(ESCAPE) {
        out.push_str(before);
        // A backslash of the text itself is doubled, so no emoji is before its escape.
        let kept = match escape.split_once('}') {
            Some(("fe0f", after)) => out.ends_with(is_emoji).then_some((EMOJI_SELECTOR, after)),
            Some(("200d", after)) => {
                let emoji = out.strip_suffix(EMOJI_SELECTOR).unwrap_or(&out);
                let joins = emoji.ends_with(is_emoji) && after.starts_with(is_emoji);
                joins.then_some((ZERO_WIDTH_JOINER, after))
            }
            _ => None,
        };
        match kept {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push_str(ESCAPE);
                rest = escape;
            }
        }
    }
    out + rest
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
    use super::quote;

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
}
