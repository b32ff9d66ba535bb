//! Lines of a file that belong to a case, for selection by `FILE:LINE`.

use std::ops::RangeInclusive;

use hotseat_document::{SourceSpan, SourceText};

/// Lines of a document of a suite.
pub(super) fn document_lines(source: &SourceText) -> RangeInclusive<u32> {
    source.first_line..=source.first_line.saturating_add(count_breaks(source.text.trim_end()))
}

/// Lines of a test in a program, from its declaration to the end of the statement. The end is found by
/// indentation: the statement continues on lines that are empty, deeper, or begin with a closing bracket or a
/// method call. It contains all lines up to `last_of_function`, if that is known: texts in it may have any indentation.
pub fn test_lines(place: &SourceSpan, last_of_function: Option<u32>) -> RangeInclusive<u32> {
    let first = place.line();
    let text = &place.source.text;
    let start = text[..place.span.start.min(text.len())].rfind('\n').map_or(0, |newline| newline + 1);
    let mut lines = text[start..].lines();
    let depth = lines.next().map_or(0, indentation);
    let (mut last, mut line_number) = (first, first);
    for line in lines {
        line_number = line_number.saturating_add(1);
        let continues = match line.trim_start().chars().next() {
            _ if last_of_function.is_some_and(|last| line_number <= last) => true,
            None => continue,
            Some(')' | ']' | '}' | '.') => indentation(line) >= depth,
            Some(_) => indentation(line) > depth,
        };
        if !continues {
            break;
        }
        last = line_number;
    }
    first..=last
}

fn indentation(line: &str) -> usize {
    line.chars().take_while(|character| character.is_whitespace()).count()
}

fn count_breaks(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&byte| byte == b'\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_ends_with_its_statement() {
        let text = "describe(\"a\", () => {\n  it(\"one\", () => {\n\n    user.says(\"hi\");\n  })\n  .tag(\"x\");\n\n  it(\"two\", () => {});\n});\n";
        let source = SourceText::new("a_test.ts", text, 1);
        let lines = |needle: &str| {
            let start = text.find(needle).unwrap();
            test_lines(&SourceSpan::new(&source, start..start + 2), None)
        };
        assert_eq!(lines("it(\"one"), 2..=6);
        assert_eq!(lines("it(\"two"), 8..=8);
        assert_eq!(lines("describe"), 1..=9);
    }

    #[test]
    fn a_document_ends_with_its_content() {
        assert_eq!(document_lines(&SourceText::new("a.yaml", "---\nname: a\nturns: []\n\n", 4)), 4..=6);
        assert_eq!(document_lines(&SourceText::new("a.jsonl", "{}", 3)), 3..=3);
    }
}
