//! Parts of secrets where a text was shortened.

use std::collections::VecDeque;

use super::marks::MIN_SECRET_BYTES;

/// Returns the end and the length of each beginning of `pattern` that ends at an ellipsis, or at a quotation mark before it.
/// The cost is linear.
pub(super) fn shortened_parts(
    text: impl Iterator<Item = u8>,
    pattern: &[u8],
    ellipsis: &[u8],
) -> Vec<(usize, usize)> {
    // Length of the longest shorter beginning that ends where a beginning ends.
    let mut shorter = vec![0; pattern.len()];
    let continued = |shorter: &[usize], mut length: usize, byte: u8| {
        while length > 0 && pattern.get(length) != Some(&byte) {
            length = shorter[length - 1];
        }
        length + usize::from(pattern.get(length) == Some(&byte))
    };
    for place in 1..pattern.len() {
        shorter[place] = continued(&shorter, shorter[place - 1], pattern[place]);
    }
    let mut parts = Vec::new();
    // The last bytes with the lengths before them: a quotation mark and an ellipsis.
    let mut recent: VecDeque<(u8, usize)> = VecDeque::new();
    let mut length = 0;
    for (place, byte) in text.enumerate() {
        if recent.len() > ellipsis.len() {
            recent.pop_front();
        }
        recent.push_back((byte, length));
        length = continued(&shorter, length, byte);
        let start = recent.len().saturating_sub(ellipsis.len());
        if byte != ellipsis[ellipsis.len() - 1]
            || !recent.iter().skip(start).map(|(byte, _)| byte).eq(ellipsis)
        {
            continue;
        }
        let end = place + 1 - ellipsis.len();
        let before_quote = recent.front().filter(|(byte, _)| start > 0 && is_quote(*byte));
        let ends =
            [(end, recent[start].1)].into_iter().chain(before_quote.map(|(_, length)| (end - 1, *length)));
        parts.extend(ends.filter(|(_, length)| *length >= MIN_SECRET_BYTES));
    }
    parts
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}
