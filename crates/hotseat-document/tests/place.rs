//! Where in the spelling of a text a part of it is.

use hotseat_document::{Source, View, yaml};

/// The line, the column and the text at `part` of the value of `a`.
fn part_of(document: &str, part: &str) -> (u32, u32, String) {
    let source = Source::new("a.yaml", document, 1);
    let node = yaml::parse(&source).unwrap();
    let value = View::new(node.get("a").unwrap(), &source);
    let text = value.text().unwrap();
    let start = text.find(part).unwrap();
    let place = value.place().within(text, start..start + part.len());
    (place.line(), place.column(), place.text().to_owned())
}

#[test]
fn a_part_of_a_text_has_a_place_however_the_text_is_written() {
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
fn the_end_of_a_text_is_a_place_as_well() {
    let source = Source::new("a.yaml", "a: >-\n  one\n  two\nb: 1\n", 1);
    let node = yaml::parse(&source).unwrap();
    let value = View::new(node.get("a").unwrap(), &source);
    let place = value.place().within("one two", 7..7);
    assert_eq!((place.line(), place.column(), place.text()), (3, 6, ""));
}

#[test]
fn where_escapes_stand_the_whole_text_is_shown() {
    let document = "a: \"one\\ttwo\"";
    assert_eq!(part_of(document, "two"), (1, 4, "\"one\\ttwo\"".to_owned()));
}
