//! Which topic a turn belongs to.

use serde_json::Value;

use super::{Seen, reasoning};

/// A topic that a turn may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// By what it is known.
    pub characteristic: Option<&'a str>,
    /// What the agent is after in it.
    pub intent: Option<&'a str>,
}

/// Which topic the last turn that is shown belongs to.
#[derive(Debug, Clone, Copy)]
pub struct TopicQuestion<'a> {
    /// The topics to choose from. The one that the conversation was in before is one of them.
    pub candidates: &'a [Candidate<'a>],
    /// The topic that the conversation was in before.
    pub current: &'a str,
    /// What is shown; the last turn is the one that is meant.
    pub seen: Seen<'a>,
}

/// The topic of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// Its name: always one of the candidates.
    pub topic: String,
    /// How sure that is.
    pub confidence: Confidence,
    /// Why, in words.
    pub reasoning: String,
    /// Whether the judge named a topic that there is not, so that the conversation stays where it was.
    pub is_fallback: bool,
}

/// How sure a judge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// No topic really fits.
    Low,
    /// Another one might fit.
    Medium,
    /// No other one fits.
    High,
}

impl Confidence {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

impl TopicQuestion<'_> {
    /// The topic, where there is nothing to choose.
    pub(super) fn only(&self) -> Option<Classified> {
        let topic = match self.candidates {
            [] => self.current,
            [only] => only.name,
            _ => return None,
        };
        Some(Classified {
            topic: topic.to_string(),
            confidence: Confidence::High,
            reasoning: "there is no other topic to go to".to_string(),
            is_fallback: false,
        })
    }
}

pub(super) fn told(question: TopicQuestion<'_>) -> String {
    let mut told = "# The topics\n".to_string();
    for Candidate { name, characteristic, intent } in question.candidates {
        told.push_str(&format!("## {name}\n"));
        for (title, words) in [("Characteristic", characteristic), ("Agent intent", intent)] {
            if let Some(words) = words.map(str::trim).filter(|words| !words.is_empty()) {
                told.push_str(&format!("{title}: {words}\n"));
            }
        }
    }
    format!("{told}\nThe conversation was in: {}", question.current)
}

pub(super) fn read(question: TopicQuestion<'_>, answer: &Value) -> Classified {
    let named = answer["topic"].as_str().unwrap_or_default().trim();
    let reasoning = reasoning(answer);
    if !question.candidates.iter().any(|candidate| candidate.name == named) {
        return Classified {
            topic: question.current.to_string(),
            confidence: Confidence::Low,
            reasoning: format!("the judge named {named:?}, which is none of the topics: {reasoning}"),
            is_fallback: true,
        };
    }
    let confidence = match answer["confidence"].as_str() {
        Some("high") => Confidence::High,
        Some("medium") => Confidence::Medium,
        _ => Confidence::Low,
    };
    Classified { topic: named.to_string(), confidence, reasoning, is_fallback: false }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question<'a>(candidates: &'a [Candidate<'a>]) -> TopicQuestion<'a> {
        let seen = Seen { test_id: "t", session_id: "s", opening: &[], turns: &[], first_judged: 1 };
        TopicQuestion { candidates, current: "greeting", seen }
    }

    const TWO: &[Candidate<'_>] = &[
        Candidate { name: "greeting", characteristic: Some(" First contact "), intent: None },
        Candidate { name: "booking", characteristic: None, intent: Some("Book a room") },
    ];

    #[test]
    fn a_topic_that_there_is_not_leaves_the_conversation_where_it_was() {
        let answer = |topic: &str| json!({"reasoning": "r", "topic": topic, "confidence": "high"});
        let found = read(question(TWO), &answer("booking"));
        assert_eq!(
            (found.topic.as_str(), found.confidence, found.is_fallback),
            ("booking", Confidence::High, false)
        );
        let found = read(question(TWO), &answer("Booking"));
        assert_eq!(
            (found.topic.as_str(), found.confidence, found.is_fallback),
            ("greeting", Confidence::Low, true)
        );
    }

    #[test]
    fn a_judge_is_told_what_there_is_to_choose_from() {
        assert_eq!(
            told(question(TWO)),
            "# The topics\n## greeting\nCharacteristic: First contact\n## booking\nAgent intent: Book a room\n\nThe conversation was in: greeting"
        );
        assert!(question(TWO).only().is_none());
        assert_eq!(question(&TWO[..1]).only().unwrap().topic, "greeting");
    }
}
