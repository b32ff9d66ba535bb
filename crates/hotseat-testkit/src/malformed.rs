//! Answers as misbehaving models and servers give them, made by rules out of two whole answers.

use serde_json::{Value, json};

/// An answer that must earn no verdict.
#[derive(Debug, Clone)]
pub struct MalformedAnswer {
    /// What is wrong with it.
    pub kind: MalformedKind,
    /// The answer.
    pub text: String,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedKind {
    /// It does not contain exactly one whole JSON value.
    Broken,
    /// It contains exactly one whole JSON value, and something else beside it.
    Prose,
    /// It is one value but for line ends and tabs in its texts that are not escaped.
    Unescaped,
}

/// All malformed answers that the rules make out of two objects: one that a careless reader would be glad to find, and one
/// that is the opposite.
pub fn malformed_answers(glad: &Value, sorry: &Value) -> Vec<MalformedAnswer> {
    let (glad_text, sorry_text) = (glad.to_string(), sorry.to_string());
    let fenced = |text: &str| format!("```json\n{text}\n```");
    let mut nested = sorry.clone();
    nested["previous"] = glad.clone();
    nested["all"] = json!([glad, sorry]);

    let mut broken = Vec::new();
    // Answers that were cut off, byte by byte.
    for whole in [nested.to_string(), format!("[{glad_text},{sorry_text}]"), fenced(&glad_text)] {
        broken.extend((1..whole.len()).filter_map(|end| Some(whole.get(..end)?.to_string())));
    }
    // Two values.
    for between in ["", " ", "\n", ",", "\n\n", " -> ", "\nCorrection: ", "\n---\n", "</think>", " or ", "; "]
    {
        for (one, other) in [(&glad_text, &sorry_text), (&sorry_text, &glad_text), (&glad_text, &glad_text)] {
            broken.push(format!("{one}{between}{other}"));
            broken.push(format!("{}{between}\n{}", fenced(one), fenced(other)));
            broken.push(format!("{}{between}\n{other}", fenced(one)));
            broken.push(format!("<think>maybe {one}? no</think>{between}{other}"));
        }
    }
    let damaged = damaged(glad, sorry);
    for text in &damaged {
        broken.extend([
            text.clone(),
            fenced(text),
            format!("Sure, here it is:\n{text}"),
            format!("<think>The answer is clear.</think>{text}"),
            format!("{text}\nI hope that this helps."),
            format!("Result:\n{}\nDone.", fenced(text)),
        ]);
    }
    // One whole value in prose.
    let mut prose = Vec::new();
    for value in [&glad_text, &sorry_text] {
        for before in ["", "Sure: ", "<think></think>", "My verdict:\n", "\u{feff}", "// note\n", "JSON = "] {
            for after in ["", " I hope that this helps!", "\n// end", ";", ",", "\n</answer>"] {
                if !(before.is_empty() && after.is_empty()) {
                    prose.push(format!("{before}{value}{after}"));
                    prose.push(format!("{before}\n{}\n{after}", fenced(value)));
                }
            }
        }
    }
    prose.retain(|text| text.trim() != fenced(&glad_text) && text.trim() != fenced(&sorry_text));
    let inner = glad_text.strip_suffix('}').unwrap_or(&glad_text);
    let unescaped =
        ["two\nlines", "a\tab", "an end\r\n"].map(|note| format!("{inner},\"note\":\"{note}\"}}"));
    let unescaped = unescaped.iter().flat_map(|text| [text.clone(), fenced(text)]).collect();
    let kinds = [
        (MalformedKind::Broken, broken),
        (MalformedKind::Prose, prose),
        (MalformedKind::Unescaped, unescaped),
    ];
    let of_kind = |(kind, texts): (MalformedKind, Vec<String>)| {
        texts.into_iter().map(move |text| MalformedAnswer { kind, text })
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Objects with damage in them.
fn damaged(glad: &Value, sorry: &Value) -> Vec<String> {
    let members = |value: &Value| value.to_string().trim_matches(['{', '}']).to_string();
    let (glad_members, sorry_members) = (members(glad), members(sorry));
    let (glad_text, sorry_text) = (glad.to_string(), sorry.to_string());
    let first_key = glad.as_object().and_then(|members| members.keys().next()).cloned().unwrap_or_default();
    let escaped_key = format!("\\u{:04x}{}", first_key.as_bytes()[0], &first_key[1..]);
    let renamed = glad_members.replacen(&first_key, &escaped_key, 1);
    vec![
        // Keys that are repeated, in both orders, in other words and further down.
        format!("{{{sorry_members},{glad_members}}}"),
        format!("{{{glad_members},{sorry_members}}}"),
        format!("{{{sorry_members},{renamed}}}"),
        format!("{{{glad_members},\"detail\":{{\"a\":1,\"a\":2}}}}"),
        format!("{{{glad_members},\"list\":[{{\"a\":1,\"a\":1}}]}}"),
        // Quotation marks.
        format!("{{{sorry_members},\"note\":\"He said \"no\"\",\"detail\":{glad_text}}}"),
        format!("{{{glad_members},\"note\":\"He said \"no\"\"}}"),
        format!("{{{glad_members},\"note\":'no'}}"),
        format!("{{{glad_members},\"note\":no}}"),
        format!("{{{glad_members},note:\"no\"}}"),
        glad_text.replace('"', "'"),
        glad_text.replace('"', "“"),
        glad_text.replacen('"', "", 1),
        glad_text.replacen("\":", ":", 1),
        // Punctuation.
        format!("{{{glad_members},}}"),
        format!("{{,{glad_members}}}"),
        format!("{{{glad_members} \"more\":1}}"),
        format!("{{{glad_members},\"more\" 1}}"),
        format!("{{{glad_members},\"more\":}}"),
        format!("{{{glad_members}}}}}"),
        format!("{{{{{glad_members}}}"),
        format!("{{{{{glad_members}}}}}"),
        format!("[{glad_text}"),
        format!("{glad_text}]"),
        format!("[{glad_text},]"),
        glad_text.replacen(':', "=", 1),
        // What other languages have.
        format!("{{{glad_members},\"more\":True}}"),
        format!("{{{glad_members},\"more\":None}}"),
        format!("{{{glad_members},\"more\":NaN}}"),
        format!("{{{glad_members},\"more\":undefined}}"),
        format!("{{{glad_members},\"more\":+1}}"),
        format!("{{{glad_members},\"more\":01}}"),
        format!("{{{glad_members},\"more\":.5}}"),
        format!("{{{glad_members},\"more\":0x1F}}"),
        format!("{{{glad_members} /* sure */}}"),
        format!("{{{glad_members} // sure\n}}"),
        // Characters that must be escaped, and escapes that are none.
        format!("{{{glad_members},\"note\":\"a\u{8}backspace\"}}"),
        format!("{{{glad_members},\"note\":\"\\x41\"}}"),
        format!("{{{glad_members},\"note\":\"\\ud800\"}}"),
        format!("{{{glad_members},\"note\":\"\\u12\"}}"),
        // A part of an object that has lost its beginning or its end.
        format!("{sorry_members},\"previous\":{glad_text}"),
        format!("\"previous\":{glad_text},{sorry_members}"),
        format!("\"previous\":{glad_text},{sorry_members}}}"),
        format!("{{\"results\":[{glad_text},{sorry_text}"),
        format!("{{\"results\":[{glad_text},"),
        format!("{{{sorry_members},\"previous\":{glad_text},\"x\":"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_very_many_and_none_is_json() {
        let all = malformed_answers(
            &json!({"passed": true, "reason": "r"}),
            &json!({"passed": false, "reason": "r"}),
        );
        assert!(all.len() >= 600, "{}", all.len());
        let is_repeated = |text: &str| text.contains("\"a\":1,\"a\"") || text.matches("assed\":").count() > 1;
        for MalformedAnswer { text, .. } in &all {
            let parsed: Result<Value, _> = serde_json::from_str(text);
            assert!(parsed.is_err() || is_repeated(text), "{text}");
        }
    }
}
