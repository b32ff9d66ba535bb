//! Diagnostics show the lines they refer to, and their text cannot control a terminal.

use std::sync::Arc;

use hotseat_document::{Diagnostic, Diagnostics, SourceSpan, SourceText, yaml};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

fn source(text: &str) -> Arc<SourceText> {
    SourceText::new("cases/suite.yaml", text, 1)
}

/// Location of the first `part` in `source`.
#[track_caller]
fn location_of(source: &Arc<SourceText>, part: &str) -> SourceSpan {
    let start = source.text.find(part).expect("the text holds the part");
    SourceSpan::new(source, start..start + part.len())
}

#[track_caller]
fn assert_rendered(diagnostic: &Diagnostic, expected: &str) {
    let shown = diagnostic.render(false, 80);
    assert_eq!(shown, expected.trim_matches('\n'), "\n{shown}");
}

#[test]
fn shows_line_label_and_help() {
    let source = source("name: x\nturns:\n  - tpye: user\n");
    let diagnostic = Diagnostic::new("unknown key `tpye`")
        .at(location_of(&source, "tpye"))
        .with_label("not known here")
        .help("did you mean `type`?");
    assert_rendered(
        &diagnostic,
        "
error: unknown key `tpye`
 --> cases/suite.yaml:3:5
  |
3 |   - tpye: user
  |     ^^^^ not known here
  |
  = help: did you mean `type`?
",
    );
}

#[test]
fn diagnostic_without_location_is_its_message() {
    assert_rendered(&Diagnostic::new("nothing was found"), "error: nothing was found");
}

#[test]
fn nearby_locations_share_an_excerpt() {
    let mistakes =
        yaml::parse(&source("a: 1\nb: 2\nc: 3\nd: 4\na: 5\n")).expect_err("a key is written twice");
    assert_rendered(
        &mistakes[0],
        "
error: the key `a` is written twice
 --> cases/suite.yaml:5:1
  |
1 | a: 1
  | - first
...
5 | a: 5
  | ^ again
",
    );
}

#[test]
fn distant_locations_have_separate_excerpts() {
    let here = source("user: ${NAME}\n");
    let far = SourceText::new("hotseat.yaml", "a: 1\nb: 2\n", 300);
    let diagnostic = Diagnostic::new("`NAME` is not defined")
        .at(location_of(&here, "${NAME}"))
        .with_related(location_of(&far, "b: 2"), "others are defined here");
    assert_rendered(
        &diagnostic,
        "
error: `NAME` is not defined
   --> cases/suite.yaml:1:7
    |
  1 | user: ${NAME}
    |       ^^^^^^^
    |
   ::: hotseat.yaml:301:1
    |
301 | b: 2
    | ---- others are defined here
",
    );
}

#[test]
fn multi_line_span_is_shown_on_first_line() {
    let source = source("hooks:\n  - cmd: x\n    cwd: y\n");
    assert_rendered(
        &Diagnostic::new("not like this").at(location_of(&source, "cmd: x\n    cwd: y")),
        "
error: not like this
 --> cases/suite.yaml:2:5
  |
2 |   - cmd: x
  |     ^^^^^^
",
    );
}

#[test]
fn line_numbers_match_file() {
    let source = SourceText::new("suite.yaml", "---\nname: @x\n", 9_999);
    let mistakes = yaml::parse(&source).expect_err("it is not valid");
    assert_rendered(
        &mistakes[0],
        "
error: unquoted text cannot start with this character
     --> suite.yaml:10000:7
      |
10000 | name: @x
      |       ^
      |
      = help: write the text in quotes
",
    );
}

#[test]
fn caret_aligns_with_wide_characters_and_tabs() {
    let source = source("k: 😀漢字\t[é]\r\nnext: line\r\n");
    let diagnostic = Diagnostic::new("here").at(location_of(&source, "é"));
    assert_eq!((diagnostic.line(), diagnostic.column()), (Some(1), Some(9)));
    assert_rendered(
        &diagnostic,
        "
error: here
 --> cases/suite.yaml:1:9
  |
1 | k: 😀漢字    [é]
  |               ^
",
    );
}

#[test]
fn empty_span_is_one_caret_even_at_end() {
    let source = source("a: [1\n");
    assert_rendered(
        &Diagnostic::new("open").at(SourceSpan::new(&source, 5..5)),
        "
error: open
 --> cases/suite.yaml:1:6
  |
1 | a: [1
  |      ^
",
    );
    assert_rendered(
        &Diagnostic::new("end").at(SourceSpan::new(&source, 6..6)),
        "
error: end
 --> cases/suite.yaml:2:1
  |
2 |
  | ^
",
    );
}

#[test]
fn control_characters_are_escaped() {
    let source =
        SourceText::new("a\u{1b}[2J.yaml", "name: \u{1b}[31mred\u{7f}\u{9b}0m\u{202e}txt\0 here\n", 1);
    let diagnostic = Diagnostic::new("bad \u{1b}]0;title\u{7} name\nerror: fake")
        .at(location_of(&source, "here"))
        .with_label("l\u{8}abel")
        .with_related(location_of(&source, "name"), "al\rso")
        .help("first\nsecond \u{1b}[1m");
    assert_rendered(
        &diagnostic,
        "
error: bad ␛]0;title␇ name␊error: fake
 --> a␛[2J.yaml:1:25
  |
1 | name: ␛[31mred␡�0m�txt␀ here
  | ---- al␍so              ^^^^ l␈abel
  |
  = help: first
          second ␛[1m
",
    );
}

#[test]
fn color_is_optional() {
    let source = source("a: 1\n");
    let diagnostic = Diagnostic::new("wrong").at(location_of(&source, "1"));
    assert!(!diagnostic.render(false, 80).contains('\u{1b}'));
    assert!(diagnostic.render(true, 80).contains("\u{1b}[1m"));
}

#[test]
fn long_lines_are_cut_around_caret() {
    let text = format!("{{a: \"{}\", b: c: d, e: \"{}\"}}\n", "x ".repeat(250_000), "y ".repeat(250_000));
    let mistakes = yaml::parse(&source(&text)).expect_err("it is not valid");
    assert_rendered(
        &mistakes[0],
        "
error: expected `,` or `}` here
 --> cases/suite.yaml:1:500013
  |
1 | ... x x x x x x x x x x x x x \", b: c: d, e: \"y y y y y y y y y y y y y y...
  |                                      ^
  |
  = help: write text that contains `,`, `{`, `}`, `[` or `]` in quotes
",
    );
}

#[test]
fn secrets_far_within_long_lines_are_masked() {
    let text = format!(
        "{{\"a\": \"{}\", \"api_key\": \"sk-{}\", \"b\": 1}}",
        "x ".repeat(250_000),
        "q".repeat(3_000)
    );
    let source = source(&text);
    let shown = Diagnostic::new("wrong").at(location_of(&source, "\"b\"")).render(false, 80);
    assert!(shown.contains(" --> cases/suite.yaml:1:503029\n"), "{shown}");
    assert!(shown.contains("xxxxxx\", \"b\": 1}") && !shown.contains('q'), "{shown}");
}

#[test]
fn span_as_long_as_line_shows_its_start() {
    let text = "x ".repeat(250_000);
    let source = source(&text);
    assert_rendered(
        &Diagnostic::new("long").at(SourceSpan::new(&source, 0..text.len())).with_label("all of it"),
        "
error: long
 --> cases/suite.yaml:1:1
  |
1 | x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x...
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ all of it
",
    );
}

#[test]
fn distant_spans_on_long_line_omit_text_between() {
    let text = format!("{{a: 1, b: \"{}\", a: 2}}", "x ".repeat(250_000));
    let mistakes = yaml::parse(&source(&text)).expect_err("a key is written twice");
    let shown = mistakes[0].render(false, 80);
    assert!(shown.len() < 600, "{shown}");
    assert!(shown.contains("^ again") && shown.contains("- first"), "{shown}");
}

#[test]
fn long_keys_are_truncated_in_messages() {
    let key = "k".repeat(900);
    let mistakes =
        yaml::parse(&source(&format!("{key}: 1\n{key}: 2\n"))).expect_err("a key is written twice");
    assert_eq!(mistakes[0].message(), format!("the key `{}…` is written twice", "k".repeat(60)));
}

#[test]
fn location_is_machine_readable() {
    let source = SourceText::new("suite.yaml", "é: x\n", 7);
    let diagnostic = Diagnostic::new("wrong").at(location_of(&source, "x"));
    assert_eq!(
        (diagnostic.message(), diagnostic.file(), diagnostic.line(), diagnostic.column()),
        ("wrong", Some("suite.yaml"), Some(7), Some(4))
    );
    assert_eq!(diagnostic.to_string(), "suite.yaml:7:4: wrong");
    assert_eq!(Diagnostic::new("wrong").to_string(), "wrong");
    assert_eq!(Diagnostic::new("wrong").line(), None);
}

#[test]
fn diagnostics_are_separated_by_blank_lines() {
    let mut mistakes = Diagnostics::new();
    mistakes.push(Diagnostic::new("first"));
    mistakes.push(Diagnostic::new("second"));
    assert_eq!(mistakes.render(false, 80), "error: first\n\nerror: second");
    assert_eq!(mistakes.to_string(), "first\nsecond");
    assert_eq!(mistakes.len(), 2);
}

#[test]
fn debug_format_of_spans_is_short() {
    let source = source("a: 1\n");
    assert_eq!(format!("{:?}", location_of(&source, "1")), "Place(cases/suite.yaml:1:4)");
    assert_eq!(format!("{source:?}"), "Source(cases/suite.yaml:1, 5 bytes)");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Includes locations outside the text and inside characters.
    #[test]
    fn rendering_never_panics(
        text in "(\\PC|[\\n\\r\\t\\x00-\\x1f\u{9b}]){0,60}",
        message in any::<String>(),
        spans in prop::collection::vec((0usize..80, 0usize..80), 1..4),
        width in 0usize..200,
    ) {
        let source = source(&text);
        let mut diagnostic = Diagnostic::new(&message).with_label(&message).help(&message);
        for (start, end) in spans {
            let place = SourceSpan::new(&source, start..end);
            diagnostic = match diagnostic.place {
                None => diagnostic.at(place),
                Some(_) => diagnostic.with_related(place, &message),
            };
        }
        let shown = diagnostic.render(false, width);
        prop_assert!(shown.chars().all(|shown| shown == '\n' || !shown.is_control()), "{shown:?}");
        let one_line = diagnostic.to_string();
        prop_assert!(!one_line.contains(char::is_control), "{one_line:?}");
    }

    /// Wide characters take two columns each.
    #[test]
    fn excerpts_fit_width_and_carets_align(
        before in "(漢|😀|❤\u{fe0f}|a| ){0,400}",
        marked in "(漢|😀|a){0,400}",
        after in "(漢|😀|❤\u{fe0f}|a){0,400}",
        width in 40usize..120,
    ) {
        let source = source(&format!("{before}[{marked}]{after}"));
        let mark = before.len()..before.len() + marked.len() + 2;
        let shown = Diagnostic::new("wrong").at(SourceSpan::new(&source, mark)).render(false, width);
        let lines: Vec<&str> = shown.lines().collect();
        let place = format!(" --> cases/suite.yaml:1:{}", before.chars().count() + 1);
        prop_assert_eq!(lines[1], place);
        let (text, carets) = (lines[3], lines[4]);
        prop_assert!(text.width() <= width && carets.width() <= width, "{shown}");
        let column = |line: &str, c| line.split_once(c).map(|(start, _)| start.width());
        prop_assert_eq!(column(text, '['), column(carets, '^'), "{}", shown);
    }
}
