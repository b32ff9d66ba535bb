//! Whether a simulated user behaves as one: says nothing that is not so, speaks for itself and for nobody else, and goes on.
//!
//! What it does otherwise is the simulated user's fault and makes the attempt invalid: it says nothing about the agent.

use std::sync::LazyLock;

use crate::cases::{Character, Notes};
use crate::checks::Pattern;

/// Of a text that is shorter than this it means nothing that it is said twice.
const WORDS: usize = 4;

/// What no user says, with what it shows.
const LEAVES: &[(&str, &str)] = &[
    (
        r"/\bas an? (artificial intelligence|ai)( language)? (model|assistant)\b/i",
        "it speaks as a language model",
    ),
    (r"/\bas a (large )?language model\b/i", "it speaks as a language model"),
    (r"/\bals (ki|künstliche intelligenz|sprachmodell)\b/i", "it speaks as a language model"),
    (
        r"/\bi( a|['’])m (just )?an? (ai|artificial intelligence|virtual|digital|large language)( language)? (model|assistant|agent|chatbot)\b/i",
        "it speaks as a language model",
    ),
    (
        r"/\bi( a|['’])m (just )?an? (ai|artificial intelligence)\s*([.,;:!?]|$)/i",
        "it speaks as a language model",
    ),
    (r"/^\W*(assistant|agent|chatbot|bot)\s*:/i", "it speaks as the agent"),
    (r"/\n\W*(assistant|agent|chatbot|bot)\s*:/i", "it writes what the agent says, too"),
    (r"/\bhow (can|may) i (help|assist) you\b/i", "it speaks as the agent"),
    (r"/\banything else i can (help|assist) you with\b/i", "it speaks as the agent"),
];

static LEFT: LazyLock<Vec<(Pattern, &str)>> = LazyLock::new(|| {
    let compiled =
        LEAVES.iter().filter_map(|(pattern, shows)| Some((Pattern::compile(pattern).ok()?, *shows)));
    compiled.collect()
});

/// What a simulated user is held against.
pub(super) struct Conduct<'a> {
    /// Who it is.
    pub character: &'a Character,
    /// What it has said before, in order.
    pub earlier: Vec<&'a str>,
    /// What the agent said last.
    pub last_response: &'a str,
    /// How often it may say the same again.
    pub most_repeats: Option<usize>,
}

impl Conduct<'_> {
    /// What is wrong with what it says, if anything is.
    pub fn wrong(&self, said: &str) -> Option<String> {
        if let Some(pattern) = self.character.never_says.iter().find(|pattern| pattern.fits(said)) {
            return Some(format!("it says what is not so (`never_says` has {pattern}): {said:?}"));
        }
        // Who is told to be such a one does not leave its role by saying so.
        let left = LEFT.iter().find(|(pattern, _)| pattern.fits(said) && !self.character.fits(pattern));
        if let Some((_, shows)) = left {
            return Some(format!("it has left its role: {shows}: {said:?}"));
        }
        let words = bare(said);
        if words.split(' ').count() >= WORDS && words == bare(self.last_response) {
            return Some(format!("it has left its role: it repeats what the agent said: {said:?}"));
        }
        let most = self.most_repeats?;
        let in_a_row = self.earlier.iter().rev().take_while(|earlier| bare(earlier) == words).count();
        let in_all = self.earlier.iter().filter(|earlier| bare(earlier) == words).count();
        // Short answers fit more than one question; said again and again they fit none.
        let repeats = if words.split(' ').count() >= WORDS { in_all } else { in_a_row };
        (repeats > most)
            .then(|| format!("it repeats itself: it says this for time number {}: {said:?}", repeats + 1))
    }
}

impl Character {
    fn fits(&self, pattern: &Pattern) -> bool {
        let notes = [&self.personality, &self.context].into_iter().flatten().map(Notes::lines);
        self.role.as_ref().is_some_and(|role| pattern.fits(role))
            || notes.into_iter().any(|text| pattern.fits(&text))
    }
}

/// A text without case, punctuation and spare blanks.
fn bare(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(said: &str, earlier: &[&str]) -> Option<String> {
        let character = Character::default();
        let conduct = Conduct {
            character: &character,
            earlier: earlier.to_vec(),
            last_response: "Which room do you want?",
            most_repeats: Some(2),
        };
        conduct.wrong(said)
    }

    #[test]
    fn all_patterns_compile() {
        assert_eq!(LEFT.len(), LEAVES.len());
    }

    #[test]
    fn users_talk_as_users_do() {
        for said in [
            "Can you help me?",
            "I need an AI assistant for my shop",
            "I am an agent of the Hotel Adler",
            "Which room do I want? The blue one",
            "How can I book a room?",
            "As a language teacher I need quiet",
            "My agent: she said it is free",
            "I'm a digital marketer",
            "I am a virtual event planner",
            "I'm just an AI researcher, and need a room",
        ] {
            assert_eq!(wrong(said, &[]), None, "{said}");
        }
        for said in [
            "As an AI language model, I cannot book rooms.",
            "I'm an AI assistant and have no budget",
            "I’m an AI language model",
            "I am just a virtual assistant",
            "Sorry, I’m an AI.",
            "I am an artificial intelligence",
            "Hello! How can I help you today?",
            "Assistant: The Blue Room is free",
            "The blue one\nAgent: It is free",
            "which room do you want",
            "Als KI habe ich keine Termine",
        ] {
            let words = wrong(said, &[]).unwrap_or_default();
            assert!(words.contains("left its role"), "{said}: {words}");
        }
    }

    #[test]
    fn the_same_may_be_said_twice_and_not_for_ever() {
        let said = "I need a room for ten";
        assert_eq!(wrong(said, &[said, "Yes", "I need a room, for ten!"]), None);
        assert!(
            wrong(said, &[said, "Yes", said, "No", "i need a room for TEN"])
                .unwrap()
                .contains("time number 4")
        );
        assert_eq!(wrong("Yes", &["Yes", "Yes", "no", "Yes", "Yes"]), None);
        assert!(wrong("Yes", &["no", "Yes", "Yes", "Yes."]).is_some());
    }

    #[test]
    fn who_is_told_to_be_one_may_say_so() {
        let character =
            Character { role: Some("I am an AI assistant of Acme".to_string()), ..Character::default() };
        let conduct =
            Conduct { character: &character, earlier: Vec::new(), last_response: "", most_repeats: None };
        assert_eq!(conduct.wrong("I am an AI assistant and want a room"), None);
    }
}
