//! Finds lines and columns of a text without reading it from its start.

use std::ops::Range;
use std::sync::OnceLock;

/// Bytes between two positions of the index, so the maximum that a search reads.
const STEP: usize = 4096;

/// Lines and columns at every [`STEP`] bytes of a text. Computed at the first use. A text below one step needs none.
#[derive(Debug, Default)]
pub(super) struct PositionIndex {
    steps: OnceLock<Vec<LinePosition>>,
}

/// Where an offset of a text lies. The default is the start of the text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LinePosition {
    /// The offset, at a character boundary.
    offset: usize,
    /// Line breaks before the offset.
    pub breaks: usize,
    /// Start of the line.
    pub line_start: usize,
    /// Characters of the line before the offset.
    pub chars: usize,
}

impl LinePosition {
    /// Returns the position of a later offset.
    fn advance(self, text: &str, offset: usize) -> LinePosition {
        let mut breaks = line_breaks(text, self.offset..offset);
        match breaks.next_back() {
            None => {
                let chars = self.chars + text[self.offset..offset].chars().count();
                LinePosition { offset, chars, ..self }
            }
            Some(last) => LinePosition {
                offset,
                breaks: self.breaks + breaks.count() + 1,
                line_start: last + 1,
                chars: text[last + 1..offset].chars().count(),
            },
        }
    }
}

/// Returns the offsets in a range at which a line of the text ends: of line feeds, and of carriage returns without one.
fn line_breaks(text: &str, range: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends = memchr::memchr2_iter(b'\n', b'\r', &bytes[range.clone()]).map(move |at| range.start + at);
    ends.filter(|&at| bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'))
}

impl PositionIndex {
    /// Returns the position of the last character boundary not after `offset`.
    pub(super) fn position(&self, text: &str, offset: usize) -> LinePosition {
        let offset = text.floor_char_boundary(offset);
        let near = match offset < STEP {
            true => LinePosition::default(),
            false => self.steps(text)[offset / STEP],
        };
        near.advance(text, offset)
    }

    /// Returns the start of the line after this many line breaks. `None` if the text has fewer.
    pub(super) fn line_start(&self, text: &str, breaks: usize) -> Option<usize> {
        let Some(missing) = breaks.checked_sub(1) else { return Some(0) };
        let near = self.last_step(text, breaks);
        let last = line_breaks(text, near.offset..text.len()).nth(missing - near.breaks)?;
        Some(last + 1)
    }

    /// Returns the span of the line that contains `offset`, without its line break.
    pub(super) fn line_span(&self, text: &str, offset: usize) -> Range<usize> {
        let position = self.position(text, offset);
        let searched = self.last_step(text, position.breaks + 1).offset.max(position.offset);
        let end = line_breaks(text, searched..text.len()).next().unwrap_or(text.len());
        let end = if text[position.line_start..end].ends_with('\r') { end - 1 } else { end };
        position.line_start..end
    }

    /// Returns the last step before this line break, counted from 1.
    fn last_step(&self, text: &str, breaks: usize) -> LinePosition {
        let steps = if text.len() < STEP { &[] } else { self.steps(text) };
        let next = steps.partition_point(|step| step.breaks < breaks);
        next.checked_sub(1).map_or(LinePosition::default(), |last| steps[last])
    }

    fn steps(&self, text: &str) -> &[LinePosition] {
        self.steps.get_or_init(|| {
            let mut steps = vec![LinePosition::default()];
            for offset in (STEP..=text.len()).step_by(STEP) {
                let last = steps[steps.len() - 1];
                steps.push(last.advance(text, text.floor_char_boundary(offset)));
            }
            steps
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares offsets of a text with a search from its start.
    fn check_offsets(text: &str) {
        let index = PositionIndex::default();
        for offset in (0..text.len() + 2).step_by(7) {
            let place = text.floor_char_boundary(offset);
            let before = &text[..place];
            let found = index.position(text, offset);
            let breaks = |text: &str| text.replace("\r\n", " \n").replace('\r', "\n");
            // A line feed after the text ends a line with the carriage return before it.
            let ends_within = text[place..].starts_with('\n') && before.ends_with('\r');
            let lines = breaks(if ends_within { &before[..place - 1] } else { before });
            let line_start = lines.rfind('\n').map_or(0, |last| last + 1);
            assert_eq!(found.breaks, lines.matches('\n').count());
            assert_eq!(found.line_start, line_start);
            assert_eq!(found.chars, before[line_start..].chars().count());
            let line = text[line_start..].split(['\n', '\r']).next().unwrap();
            assert_eq!(index.line_span(text, offset), line_start..line_start + line.len());
            assert_eq!(index.line_start(text, found.breaks), Some(line_start));
        }
        let breaks = text.replace("\r\n", "\n").matches(['\n', '\r']).count();
        assert_eq!(index.line_start(text, breaks + 1), None);
    }

    #[test]
    fn finds_what_a_search_from_the_start_finds() {
        check_offsets("");
        check_offsets("one\r\ntwo\n\nthrée");
        check_offsets(&"a line of text\n".repeat(1_000));
        check_offsets(&"ä€😀\r\n".repeat(2_000));
        check_offsets(&"ä€😀\r\rx".repeat(2_000));
        check_offsets(&"ä€😀".repeat(3_000));
        check_offsets(&format!("{}\n{}", "x".repeat(3 * STEP - 1), "y".repeat(STEP)));
    }
}
