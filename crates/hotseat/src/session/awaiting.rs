//! Whether an agent waits for the user when its turn is over.

use hotseat_trace::Turn;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checks::read_json;

/// What shows that an agent waits where it does not say so itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signs {
    /// Tools by which it asks the user for something.
    pub tools: Vec<String>,
    /// Whether its words are read for questions.
    pub questions: bool,
}

impl Default for Signs {
    fn default() -> Self {
        let tools = ["request_confirmation", "ask_user", "get_user_input"].map(str::to_string);
        Signs { tools: tools.to_vec(), questions: true }
    }
}

/// Whether an agent waits for the user, and how that shows. The first sign decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It says that it waits: as its protocol has it, or by `awaiting_input` in its answer, in what its run returned or in
    /// the shared state.
    Declared,
    /// It called a tool that asks the user.
    AskingTool,
    /// Its last reply is cut off, or it was still at work: nothing that it says is read as a question.
    Unfinished,
    /// What it says is a question or a request.
    Question,
    /// It says that it does not wait.
    DeclaredDone,
    /// Nothing says that it waits.
    Completed,
}

impl Waiting {
    /// Whether it waits.
    pub fn is_awaiting(self) -> bool {
        match self {
            Waiting::Declared | Waiting::AskingTool | Waiting::Question => true,
            Waiting::DeclaredDone | Waiting::Unfinished | Waiting::Completed => false,
        }
    }

    /// The name used in reports.
    pub fn reason(self) -> &'static str {
        match self {
            Waiting::Declared => "agent_declared",
            Waiting::AskingTool => "tool_requires_confirmation",
            Waiting::Question => "content_is_question",
            Waiting::DeclaredDone => "agent_declared_done",
            Waiting::Unfinished => "finish_reason",
            Waiting::Completed => "completed",
        }
    }

    /// Looks at a turn that is over.
    pub fn of(turn: &Turn, signs: &Signs) -> Waiting {
        if let Some(told) = &turn.awaiting {
            return if told.awaiting { Waiting::Declared } else { Waiting::DeclaredDone };
        }
        let answer = turn.answer().unwrap_or_default();
        let said = read_json(answer).ok();
        let declared = [said.as_ref(), turn.result.as_ref(), turn.state.as_deref()];
        match declared.into_iter().flatten().find_map(declaration) {
            Some(true) => return Waiting::Declared,
            Some(false) => return Waiting::DeclaredDone,
            None => {}
        }
        if turn.tool_calls.iter().any(|call| signs.tools.iter().any(|tool| **tool == *call.name)) {
            return Waiting::AskingTool;
        }
        if matches!(turn.finish_reason.as_deref(), Some("length" | "tool_calls")) {
            return Waiting::Unfinished;
        }
        let text = match said.as_ref().and_then(|said| said.get("content")).and_then(Value::as_str) {
            Some(content) => content,
            None => answer,
        };
        if signs.questions && asks(text) { Waiting::Question } else { Waiting::Completed }
    }
}

/// What an agent waits for, in its words: as its protocol has it, or by `input_hint` beside `awaiting_input`.
pub fn input_hint(turn: &Turn) -> Option<String> {
    let told = turn.awaiting.as_ref().and_then(|awaiting| awaiting.hint.clone());
    told.or_else(|| {
        let said = read_json(turn.answer().unwrap_or_default()).ok();
        let declared = [said.as_ref(), turn.result.as_ref(), turn.state.as_deref()];
        let value = declared.into_iter().flatten().find(|value| declaration(value).is_some())?;
        Some(value.get("input_hint")?.as_str()?.to_string())
    })
}

/// What a value says of waiting, if it says anything.
fn declaration(value: &Value) -> Option<bool> {
    let said = value.get("awaiting_input").and_then(Value::as_bool);
    said.or_else(|| (value.get("status")? == "need_input").then_some(true))
}

/// Whether a text asks the user for something: it ends with a question mark, or one of its sentences begins with
/// words that ask.
fn asks(text: &str) -> bool {
    let text = text.trim_end_matches(|last: char| last.is_whitespace() || "*_`\"'”’»)]".contains(last));
    // The marks of Latin, Chinese, Arabic, Greek and Armenian.
    if text.ends_with(['?', '？', '؟', '\u{37E}', '՞']) {
        return true;
    }
    sentences(text).any(|sentence| {
        let lower = sentence.to_lowercase();
        let asking_word = ASKING_STARTS.iter().any(|start| begins_with(&lower, start));
        // `What a day!` asks nothing; a request does not need a question mark.
        let asks_for = match asking_word {
            true if QUESTION_WORDS.iter().any(|word| begins_with(&lower, word)) => !lower.ends_with('!'),
            asks => asks,
        };
        asks_for || CONFIRM.iter().any(|word| lower.contains(word))
    })
}

/// The sentences of a text. Code is left out: what stands there is not said to the user.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let lines = prose.flat_map(|prose| prose.split(['\n', '。', '！']));
    let sentences = lines.flat_map(|line| line.split_inclusive(['.', '!', '?', '？']));
    sentences
        .map(|sentence| sentence.trim_matches(|c: char| c.is_whitespace() || "*_-•>#¿¡\"'“‘".contains(c)))
        .filter(|sentence| !sentence.is_empty())
}

/// Whether a sentence begins with a word, and not with a longer one. Languages that put no spaces between words have
/// no longer ones.
fn begins_with(sentence: &str, start: &str) -> bool {
    sentence.strip_prefix(start).is_some_and(|rest| {
        let spaced = start.is_ascii() || start.chars().last().is_some_and(|last| last < '\u{2E80}');
        !spaced || !rest.starts_with(char::is_alphanumeric)
    })
}

/// Words that begin a question.
const QUESTION_WORDS: &[&str] = &["what", "how", "when", "where", "which", "who", "whom"];

/// Words that begin a question or a request: in English, German, French, Spanish, Italian, Portuguese, Chinese and
/// Japanese.
const ASKING_STARTS: &[&str] = &[
    "what",
    "how",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "please",
    "could you",
    "can you",
    "would you",
    "bitte",
    "können sie",
    "könnten sie",
    "welche",
    "wie viel",
    "wann möchten",
    "veuillez",
    "pourriez-vous",
    "pouvez-vous",
    "s'il vous plaît",
    "quel",
    "quelle",
    "por favor",
    "podría",
    "puede indicar",
    "cuál",
    "per favore",
    "potrebbe",
    "poderia",
    "请",
    "請",
    "どの",
];

/// Words that ask for a decision, wherever they stand.
const CONFIRM: [&str; 5] = ["confirm?", "verify?", "proceed?", "continue?", "ください"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_and_what_does_not() {
        for text in [
            "What type of expense would you like to submit?",
            "Amount?\n",
            "金额？",
            "Shall I? **",
            "This requires manager approval. Please provide PO number.",
            "I will book it. Do you want to proceed? Just say so.",
            "Please confirm the details...",
            "Bitte nennen Sie mir Ihre Bestellnummer.",
            "Veuillez indiquer la date.",
            "¿Cuál es su número de pedido?",
            "请提供订单号。",
            "注文番号を教えてください。",
            "Found it.\n- Which of the two do you mean",
        ] {
            assert!(asks(text), "{text}");
        }
        for text in [
            "Expense submitted. Reference: EXP-2025-001",
            "Done.",
            "",
            "The order is on its way; it was pleasant.",
            "What a day!",
            "Whatever it is, it is done.",
            "Run this:\n```\nwhat --now?\n```\nDone.",
            "Your request was confirmed.",
            "He asked \"why\" and left.",
        ] {
            assert!(!asks(text), "{text}");
        }
    }
}
