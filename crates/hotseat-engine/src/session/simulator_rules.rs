//! Rules for simulated users: they state no false facts, speak only for themselves, and do not repeat
//! themselves.
//!
//! A violation is the fault of the simulator and makes the attempt invalid.

use std::sync::LazyLock;

use crate::cases::{PersonaNotes, SimulatedPersona};
use hotseat_checks::Pattern;

/// Texts with fewer words than this may be repeated.
const MIN_REPEAT_WORDS: usize = 4;

/// How a message leaves the role of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoleBreach {
    /// It speaks as a language model.
    LanguageModel,
    /// It has a phrase of the agent.
    AgentPhrase,
    /// It starts with the name of the agent and a colon.
    AgentLabel,
    /// A later line does.
    AgentLines,
}

impl RoleBreach {
    fn description(self) -> &'static str {
        match self {
            RoleBreach::LanguageModel => "it speaks as a language model",
            RoleBreach::AgentPhrase | RoleBreach::AgentLabel => "it speaks as the agent",
            RoleBreach::AgentLines => "it also writes the agent's lines",
        }
    }

    /// True if a text only looks like this: a persona that is an AI may say so, and a name may follow `Agent:`.
    fn is_excused(self, text: &str, is_ai: impl FnOnce() -> bool) -> bool {
        match self {
            RoleBreach::LanguageModel => is_ai(),
            RoleBreach::AgentPhrase => false,
            RoleBreach::AgentLabel | RoleBreach::AgentLines => only_labels_names(text),
        }
    }
}

/// Names of the agent before its lines in a dialogue.
const AGENT_LABELS: [&str; 4] = ["assistant", "agent", "chatbot", "bot"];
/// Words that begin an answer, in lower case. Another capitalised word alone is a name.
const ANSWER_OPENINGS: [&str; 16] = [
    "yes", "no", "ok", "okay", "sure", "hi", "hello", "hey", "welcome", "thanks", "great", "done", "sorry",
    "ja", "nein", "hallo",
];

/// Matches the description of a persona that is an AI itself, but not of one that only deals with an AI.
const AI_PERSONA_PATTERN: &str = r"/(^|[.!?;:\n]\s*|\b(is|are|am|be|being|as|you['’]re|i['’]m|it['’]s)\s+)(just |only )?(an? |the )?([\w-]+ ){0,2}?(ai|artificial intelligence|language model|llm|chatbot|bot|(virtual|digital) assistant|ki|künstliche intelligenz|sprachmodell)\b/i";

static AI_PERSONA: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::compile(AI_PERSONA_PATTERN).ok());

/// Patterns of texts that are out of role, with the reason.
const OUT_OF_ROLE_PATTERNS: &[(&str, RoleBreach)] = &[
    (r"/\bas an? (artificial intelligence|ai)( language)? (model|assistant)\b/i", RoleBreach::LanguageModel),
    (r"/\bas a (large )?language model\b/i", RoleBreach::LanguageModel),
    (r"/\bals (ki|künstliche intelligenz|sprachmodell)\b/i", RoleBreach::LanguageModel),
    (
        r"/\bi( a|['’])m (just )?an? (ai|artificial intelligence|virtual|digital|large language)( language)? (model|assistant|agent|chatbot)\b/i",
        RoleBreach::LanguageModel,
    ),
    (r"/\bi( a|['’])m (just )?an? (ai|artificial intelligence)\s*([.,;:!?]|$)/i", RoleBreach::LanguageModel),
    (r"/^\W*(assistant|agent|chatbot|bot)\s*:/i", RoleBreach::AgentLabel),
    (r"/\n\W*(assistant|agent|chatbot|bot)\s*:/i", RoleBreach::AgentLines),
    // Users quote these phrases, so they count only at the start of a message, behind at most a sentence or two.
    (
        r#"/^([^\w"“”„«»'‘’]*|[^"“”„«»]{0,80}[.!,]\s*)how (can|may) i (help|assist) you\b/i"#,
        RoleBreach::AgentPhrase,
    ),
    (
        r#"/^([^\w"“”„«»'‘’]*|[^"“”„«»]{0,80}[.!,]\s*)(is there )?anything else i can (help|assist) you with\b/i"#,
        RoleBreach::AgentPhrase,
    ),
];

static COMPILED_PATTERNS: LazyLock<Vec<(Pattern, RoleBreach)>> = LazyLock::new(|| {
    let compiled = OUT_OF_ROLE_PATTERNS
        .iter()
        .filter_map(|(pattern, shows)| Some((Pattern::compile(pattern).ok()?, *shows)));
    compiled.collect()
});

/// Context against which an input of a simulated user is checked.
pub(super) struct SimulatorRules<'a> {
    /// Character of the simulated user.
    pub character: &'a SimulatedPersona,
    /// Its earlier inputs, in order.
    pub earlier: Vec<&'a str>,
    /// Last answer of the agent.
    pub last_response: &'a str,
    /// Maximum number of repeats of the same text.
    pub max_repeats: Option<usize>,
}

impl SimulatorRules<'_> {
    /// Returns the violation of an input, if any.
    pub fn violation(&self, text: &str) -> Option<String> {
        if let Some(pattern) = self.character.never_says.iter().find(|pattern| pattern.is_match(text)) {
            return Some(format!("it states a false fact (`never_says` matches {pattern}): {text:?}"));
        }
        let is_ai = || AI_PERSONA.as_ref().is_some_and(|pattern| self.character.matches(pattern));
        let left = COMPILED_PATTERNS.iter().find(|(pattern, breach)| {
            pattern.is_match(text) && !self.character.matches(pattern) && !breach.is_excused(text, is_ai)
        });
        if let Some((_, breach)) = left {
            return Some(format!("it has left its role: {}: {text:?}", breach.description()));
        }
        let words = normalize(text);
        if words.split(' ').count() >= MIN_REPEAT_WORDS && words == normalize(self.last_response) {
            return Some(format!("it has left its role: it repeats what the agent said: {text:?}"));
        }
        let most = self.max_repeats?;
        let in_a_row = self.earlier.iter().rev().take_while(|earlier| normalize(earlier) == words).count();
        let in_all = self.earlier.iter().filter(|earlier| normalize(earlier) == words).count();
        // Short answers fit several questions, so only repeats in a row count.
        let repeats = if words.split(' ').count() >= MIN_REPEAT_WORDS { in_all } else { in_a_row };
        (repeats > most).then(|| format!("it repeats itself: this is time number {}: {text:?}", repeats + 1))
    }
}

impl SimulatedPersona {
    fn matches(&self, pattern: &Pattern) -> bool {
        let notes = [&self.personality, &self.context].into_iter().flatten().map(PersonaNotes::to_text);
        self.role.as_ref().is_some_and(|role| pattern.is_match(role))
            || notes.into_iter().any(|text| pattern.is_match(&text))
    }
}

/// True if only names follow `Agent:` and the like in a text, as in a list of details ("Agent: Smith, policy 12").
fn only_labels_names(text: &str) -> bool {
    let mut labelled = text.lines().filter_map(labelled_line).peekable();
    labelled.peek().is_some() && labelled.all(begins_with_name)
}

/// The rest of a line that begins with a name of the agent and a colon.
fn labelled_line(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (label, rest) = line.split_once(':')?;
    AGENT_LABELS.iter().any(|known| label.trim_end().eq_ignore_ascii_case(known)).then_some(rest)
}

/// True if a text begins with one to three capitalised words that end with it or at a comma, semicolon or bracket.
fn begins_with_name(text: &str) -> bool {
    let end = text.find([',', ';', '(']).unwrap_or(text.len());
    let words: Vec<&str> = text[..end].split_whitespace().collect();
    let is_name = |word: &&str| {
        let is_opening = ANSWER_OPENINGS.contains(&word.trim_end_matches('.').to_lowercase().as_str());
        word.starts_with(char::is_uppercase)
            && word.chars().all(|c| c.is_alphabetic() || "-'’.".contains(c))
            && !is_opening
    };
    (1..=3).contains(&words.len()) && words.iter().all(is_name)
}

/// Normalises a text: lower case, without punctuation, single spaces. A text of other signs, such as an emoji, stays.
fn normalize(text: &str) -> String {
    if !text.contains(char::is_alphabetic) {
        return text.trim().to_string();
    }
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str, earlier: &[&str]) -> Option<String> {
        let character = SimulatedPersona::default();
        let conduct = SimulatorRules {
            character: &character,
            earlier: earlier.to_vec(),
            last_response: "Which room do you want?",
            max_repeats: Some(2),
        };
        conduct.violation(text)
    }

    #[test]
    fn all_patterns_compile() {
        assert_eq!(COMPILED_PATTERNS.len(), OUT_OF_ROLE_PATTERNS.len());
        assert!(AI_PERSONA.is_some());
    }

    #[test]
    fn detects_out_of_role_texts() {
        for text in [
            "Can you help me?",
            "I need an AI assistant for my shop",
            "I am an agent of the Hotel Adler",
            "Which room do I want? The blue one",
            "How can I book a room?",
            "As a language teacher I need quiet",
            "My agent: she said it is free",
            "Agent: Smith, policy number 12, that is my insurance contact",
            "My details\nAgent: John Smith\nPolicy: 12",
            "Your bot only wrote \"How can I help you?\" and then nothing happened",
            "“How can I help you?” is all I hear",
            "Your bot asks how may I help you, and then stops",
            "I'm a digital marketer",
            "I am a virtual event planner",
            "I'm just an AI researcher, and need a room",
        ] {
            assert_eq!(wrong(text, &[]), None, "{text}");
        }
        for text in [
            "As an AI language model, I cannot book rooms.",
            "I'm an AI assistant and have no budget",
            "I’m an AI language model",
            "I am just a virtual assistant",
            "Sorry, I’m an AI.",
            "I am an artificial intelligence",
            "Hello! How can I help you today?",
            "How can I help you?",
            "How can I help you?\nAgent: Smith",
            "I'm glad to hear that. Is there anything else I can help you with?",
            "Agent: hello",
            "Agent: Yes, it is free",
            "Agent: Done.",
            "Agent:\nIt is free",
            "Assistant: The Blue Room is free",
            "The blue one\nAgent: It is free",
            "which room do you want",
            "Als KI habe ich keine Termine",
        ] {
            let words = wrong(text, &[]).unwrap_or_default();
            assert!(words.contains("left its role"), "{text}: {words}");
        }
    }

    #[test]
    fn limits_repeats() {
        let text = "I need a room for ten";
        assert_eq!(wrong(text, &[text, "Yes", "I need a room, for ten!"]), None);
        assert!(
            wrong(text, &[text, "Yes", text, "No", "i need a room for TEN"])
                .unwrap()
                .contains("time number 4")
        );
        assert_eq!(wrong("Yes", &["Yes", "Yes", "no", "Yes", "Yes"]), None);
        assert!(wrong("Yes", &["no", "Yes", "Yes", "Yes."]).is_some());
    }

    #[test]
    fn allows_ai_personas() {
        let violation = |role: &str| {
            let character = SimulatedPersona { role: Some(role.to_string()), ..SimulatedPersona::default() };
            let conduct = SimulatorRules {
                character: &character,
                earlier: Vec::new(),
                last_response: "",
                max_repeats: None,
            };
            conduct.violation("As an AI assistant I book a room")
        };
        for role in [
            "I am an AI assistant of Acme",
            "An AI language model that books rooms for its owner",
            "Acme's user. You are a large language model",
            "a polite chatbot",
            "Ein Sprachmodell",
        ] {
            assert_eq!(violation(role), None, "{role}");
        }
        for role in ["A customer who distrusts every AI", "Mary, who writes to a chatbot of Acme"] {
            assert!(violation(role).is_some(), "{role}");
        }
    }
}
