//! Memory was extracted from every completed turn, and from no other.

use super::mismatch::Mismatch;
use crate::ConversationView;

pub(super) fn find(view: &ConversationView<'_>) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for start in view.turns().starts() {
        let extracted = !view.memory_extraction().for_turn(&start.turn_id).is_empty();
        let completed = view.turns().completion(&start.turn_id).is_some();
        if extracted != completed {
            let words = |there: bool| if there { "memory extraction" } else { "no memory extraction" };
            let expected = format!("{} for turn {}", words(completed), start.turn_id);
            found.push(Mismatch::new(expected, words(extracted)).at(start.sequence));
        }
    }
    found
}
