//! Detects if an agent awaits user input after its turn.

use hotseat_trace::{ConversationTurn, named};
use serde_json::Value;

use crate::cases::AwaitingMarkers;
use hotseat_checks::read_json;

named! {
    /// State of an agent after its turn, and how it was detected. The first marker decides.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AwaitingState {
        /// Declared awaiting: by the protocol, or by `awaiting_input` in the answer, the run result or the shared
        /// state.
        Declared = "agent_declared",
        /// It called a tool that asks the user.
        AskingTool = "tool_requires_confirmation",
        /// Its last reply is truncated or ended in tool calls; the text is not searched for questions.
        Unfinished = "finish_reason",
        /// Its text is a question or a request.
        Question = "content_is_question",
        /// Declared as not awaiting.
        DeclaredDone = "agent_declared_done",
        /// No marker found.
        Completed = "completed",
    }
}

impl AwaitingState {
    /// Returns true if the agent awaits input.
    pub fn is_awaiting(self) -> bool {
        match self {
            AwaitingState::Declared | AwaitingState::AskingTool | AwaitingState::Question => true,
            AwaitingState::DeclaredDone | AwaitingState::Unfinished | AwaitingState::Completed => false,
        }
    }

    /// Detects the state after a turn.
    pub fn detect(turn: &ConversationTurn, signs: &AwaitingMarkers) -> AwaitingState {
        if let Some(awaiting) = &turn.awaiting {
            return if awaiting.awaiting { AwaitingState::Declared } else { AwaitingState::DeclaredDone };
        }
        let answer = turn.answer().unwrap_or_default();
        let json = read_json(answer).ok();
        let declared = [json.as_ref(), turn.result.as_ref(), turn.state.as_deref()];
        match declared.into_iter().flatten().find_map(declared_awaiting) {
            Some(true) => return AwaitingState::Declared,
            Some(false) => return AwaitingState::DeclaredDone,
            None => {}
        }
        if turn.tool_calls.iter().any(|call| signs.tools.iter().any(|tool| call.is_named(tool))) {
            return AwaitingState::AskingTool;
        }
        if matches!(turn.finish_reason.as_deref(), Some("length" | "tool_calls")) {
            return AwaitingState::Unfinished;
        }
        let text = match json.as_ref().and_then(|json| json.get("content")).and_then(Value::as_str) {
            Some(content) => content,
            None => answer,
        };
        if signs.questions && is_request(text) { AwaitingState::Question } else { AwaitingState::Completed }
    }
}

/// Returns the agent's own description of the awaited input: from the protocol, or `input_hint` beside
/// `awaiting_input`.
pub fn input_hint(turn: &ConversationTurn) -> Option<String> {
    let hint = turn.awaiting.as_ref().and_then(|awaiting| awaiting.hint.clone());
    hint.or_else(|| {
        let json = read_json(turn.answer().unwrap_or_default()).ok();
        let declared = [json.as_ref(), turn.result.as_ref(), turn.state.as_deref()];
        let value = declared.into_iter().flatten().find(|value| declared_awaiting(value).is_some())?;
        Some(value.get("input_hint")?.as_str()?.to_string())
    })
}

/// Returns the awaiting state that a value declares, if any.
fn declared_awaiting(value: &Value) -> Option<bool> {
    let declared = value.get("awaiting_input").and_then(Value::as_bool);
    declared.or_else(|| (value.get("status")? == "need_input").then_some(true))
}

/// Returns true if a text asks the user for something: it ends with a question mark, or a sentence starts
/// with a question or request word.
fn is_request(text: &str) -> bool {
    let text = text.trim_end_matches(|last: char| last.is_whitespace() || "*_`\"'”’»)]".contains(last));
    // Question marks of Latin, Chinese, Arabic, Greek and Armenian script.
    if text.ends_with(['?', '？', '؟', '\u{37E}', '՞']) {
        return true;
    }
    sentences(text).any(|sentence| {
        let lower = sentence.to_lowercase();
        let asking_word = REQUEST_STARTS.iter().any(|start| starts_with_word(&lower, start));
        // An exclamation such as `RecordedEventKind a day!` is no question; a request needs no question mark.
        let asks_for = match asking_word {
            true if QUESTION_WORDS.iter().any(|word| starts_with_word(&lower, word)) => !lower.ends_with('!'),
            asks => asks,
        };
        asks_for || CONFIRMATION_WORDS.iter().any(|word| lower.contains(word))
    })
}

/// Returns the sentences of a text, without code blocks.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let lines = prose.flat_map(|prose| prose.split(['\n', '。', '！']));
    let sentences = lines.flat_map(|line| line.split_inclusive(['.', '!', '?', '？']));
    sentences
        .map(|sentence| sentence.trim_matches(|c: char| c.is_whitespace() || "*_-•>#¿¡\"'“‘".contains(c)))
        .filter(|sentence| !sentence.is_empty())
}

/// Returns true if a sentence starts with this word and not with a longer one. Scripts without spaces have no
/// word boundary.
fn starts_with_word(sentence: &str, start: &str) -> bool {
    sentence.strip_prefix(start).is_some_and(|rest| {
        let spaced = start.is_ascii() || start.chars().last().is_some_and(|last| last < '\u{2E80}');
        !spaced || !rest.starts_with(char::is_alphanumeric)
    })
}

/// First words of questions.
const QUESTION_WORDS: &[&str] = &["what", "how", "when", "where", "which", "who", "whom"];

/// First words of questions and requests in English, German, French, Spanish, Italian, Portuguese, Chinese
/// and Japanese.
const REQUEST_STARTS: &[&str] = &[
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

/// Words that ask for a decision, anywhere in a sentence.
const CONFIRMATION_WORDS: [&str; 5] = ["confirm?", "verify?", "proceed?", "continue?", "ください"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_questions_and_requests() {
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
            assert!(is_request(text), "{text}");
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
            assert!(!is_request(text), "{text}");
        }
    }
}
