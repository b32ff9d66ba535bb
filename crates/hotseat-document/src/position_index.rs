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
        let passed = &text[self.offset..offset];
        match passed.rfind('\n') {
            None => LinePosition { offset, chars: self.chars + passed.chars().count(), ..self },
            Some(last) => LinePosition {
                offset,
                breaks: self.breaks + passed.bytes().filter(|&byte| byte == b'\n').count(),
                line_start: self.offset + last + 1,
                chars: passed[last + 1..].chars().count(),
            },
        }
    }
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

    /// Returns the span of the line that contains `offset`, without its line break.
    pub(super) fn line_span(&self, text: &str, offset: usize) -> Range<usize> {
        let position = self.position(text, offset);
        let steps = if text.len() < STEP { &[] } else { self.steps(text) };
        let next = steps.partition_point(|step| step.breaks <= position.breaks);
        let last = next.checked_sub(1).map_or(0, |last| steps[last].offset);
        let searched = last.max(position.offset);
        let end = text[searched..].find('\n').map_or(text.len(), |length| searched + length);
        let end = if text[position.line_start..end].ends_with('\r') { end - 1 } else { end };
        position.line_start..end
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
            let line_start = before.rfind('\n').map_or(0, |last| last + 1);
            assert_eq!(found.breaks, before.matches('\n').count());
            assert_eq!(found.line_start, line_start);
            assert_eq!(found.chars, before[line_start..].chars().count());
            let line = text[line_start..].split('\n').next().unwrap();
            let line = line.strip_suffix('\r').unwrap_or(line);
            assert_eq!(index.line_span(text, offset), line_start..line_start + line.len());
        }
    }

    #[test]
    fn finds_what_a_search_from_the_start_finds() {
        check_offsets("");
        check_offsets("one\r\ntwo\n\nthrée");
        check_offsets(&"a line of text\n".repeat(1_000));
        check_offsets(&"ä€😀\r\n".repeat(2_000));
        check_offsets(&"ä€😀".repeat(3_000));
        check_offsets(&format!("{}\n{}", "x".repeat(3 * STEP - 1), "y".repeat(STEP)));
    }
}
