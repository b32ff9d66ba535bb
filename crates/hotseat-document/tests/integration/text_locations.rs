//! Locations of parts of a text value.

use hotseat_document::{NodeView, SourceText, yaml};

/// Line, column and text at `part` of the value of `a`.
fn part_of(document: &str, part: &str) -> (u32, u32, String) {
    let source = SourceText::new("a.yaml", document, 1);
    let node = yaml::parse(&source).unwrap();
    let value = NodeView::new(node.get("a").unwrap(), &source);
    let text = value.text().unwrap();
    let start = text.find(part).unwrap();
    let place = value.place().within(text, start..start + part.len());
    (place.line(), place.column(), place.text().to_owned())
}

#[test]
fn part_of_text_has_location_in_any_style() {
    let table = [
        ("a: one two three", (1, 8)),
        ("a: 'one two three'", (1, 9)),
        ("a: \"one two three\"", (1, 9)),
        ("a: |\n  one\n  two three\n", (3, 3)),
        ("a: >-\n  one\n  two three\n", (3, 3)),
        ("a: one\n   two three\n", (2, 4)),
    ];
    for (document, (line, column)) in table {
        assert_eq!(part_of(document, "two"), (line, column, "two".to_owned()), "{document}");
    }
}

#[test]
fn end_of_text_has_location() {
    let source = SourceText::new("a.yaml", "a: >-\n  one\n  two\nb: 1\n", 1);
    let node = yaml::parse(&source).unwrap();
    let value = NodeView::new(node.get("a").unwrap(), &source);
    let place = value.place().within("one two", 7..7);
    assert_eq!((place.line(), place.column(), place.text()), (3, 6, ""));
}

#[test]
fn escaped_text_is_located_as_a_whole() {
    let document = "a: \"one\\ttwo\"";
    assert_eq!(part_of(document, "two"), (1, 4, "\"one\\ttwo\"".to_owned()));
}
