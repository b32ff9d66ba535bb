//! Malformed answers of models and servers, derived from two valid ones.

use serde_json::{Value, json};

/// An answer that must be rejected.
#[derive(Debug, Clone)]
pub struct MalformedAnswer {
    /// Kind of the defect.
    pub kind: MalformedKind,
    /// The answer.
    pub text: String,
}

/// Kind of the defect of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedKind {
    /// Does not contain exactly one complete JSON value.
    Broken,
    /// Contains one complete JSON value and other text.
    Prose,
    /// Is one JSON value with unescaped line breaks and tabs in strings.
    Unescaped,
}

/// Returns all malformed answers derived from two objects: one that a careless parser would accept, and its
/// opposite.
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

/// Damaged objects.
fn damaged(glad: &Value, sorry: &Value) -> Vec<String> {
    let members = |value: &Value| value.to_string().trim_matches(['{', '}']).to_string();
    let (glad_members, sorry_members) = (members(glad), members(sorry));
    let (glad_text, sorry_text) = (glad.to_string(), sorry.to_string());
    let first_key = glad.as_object().and_then(|members| members.keys().next()).cloned().unwrap_or_default();
    let escaped_key = format!("\\u{:04x}{}", first_key.as_bytes()[0], &first_key[1..]);
    let renamed = glad_members.replacen(&first_key, &escaped_key, 1);
    vec![
        // Duplicate keys: in both orders, escaped, and nested.
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
        // Syntax of other languages.
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
        // Characters that must be escaped, and invalid escapes.
        format!("{{{glad_members},\"note\":\"a\u{8}backspace\"}}"),
        format!("{{{glad_members},\"note\":\"\\x41\"}}"),
        format!("{{{glad_members},\"note\":\"\\ud800\"}}"),
        format!("{{{glad_members},\"note\":\"\\u12\"}}"),
        // Fragments of objects without start or end.
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
    fn all_answers_are_invalid_json() {
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
