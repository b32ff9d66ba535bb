//! The documentation, the help, the reference and all messages use the words of docs/glossary.md, which lists the
//! phrases to avoid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HOTSEAT: &str = env!("CARGO_BIN_EXE_hotseat");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files below a folder with this extension, in order.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path, extension)),
            false if path.extension().is_some_and(|own| own == extension) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// Lower-case words of a text, without punctuation.
fn words(text: &str) -> Vec<String> {
    let separated = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    separated.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The phrases of the left column under "Words to avoid", each as its words.
fn phrases_to_avoid() -> Vec<Vec<String>> {
    let glossary = fs::read_to_string(repository().join("docs/glossary.md")).unwrap();
    let (_, table) = glossary.split_once("## Words to avoid").expect("the glossary has a table");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.split('|').nth(1).expect("a row has cells").to_string());
    cells.flat_map(|cell| cell.split(',').map(words).collect::<Vec<_>>()).collect()
}

/// The first phrase to avoid in a text.
fn phrase_in<'a>(text: &str, phrases: &'a [Vec<String>]) -> Option<&'a [String]> {
    let words = words(text);
    let occurs =
        |phrase: &&Vec<String>| words.windows(phrase.len()).any(|window| window == phrase.as_slice());
    phrases.iter().find(occurs).map(Vec::as_slice)
}

/// String literals of a line of source that hold more than one word, without their placeholders.
fn messages(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut literal: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (&mut literal, letter) {
            (Some(text), '\\') => text.extend(['\\', letters.next().unwrap_or(' ')]),
            (Some(_), '"') => found.extend(literal.take().filter(|text| text.trim().contains(' '))),
            (Some(text), '{') => {
                text.extend(letters.by_ref().take_while(|letter| *letter != '}').map(|_| '_'))
            }
            (Some(text), letter) => text.push(letter),
            (None, '"') => literal = Some(String::new()),
            (None, _) => {}
        }
    }
    found.extend(literal.filter(|text| text.trim().contains(' ')));
    found
}

/// Fails with every line that contains a phrase to avoid.
fn assert_plain(lines: impl IntoIterator<Item = (String, String)>) {
    let phrases = phrases_to_avoid();
    let found = lines.into_iter().filter_map(|(place, text)| {
        let phrase = phrase_in(&text, &phrases)?.join(" ");
        Some(format!("{place}: `{phrase}` in: {}\n", text.trim()))
    });
    let found: String = found.collect();
    assert!(found.is_empty(), "docs/glossary.md names the words to use instead:\n{found}");
}

fn numbered_lines(path: &Path) -> Vec<(String, String)> {
    let name = path.strip_prefix(repository()).unwrap().display().to_string();
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .enumerate()
        .map(|(index, line)| (format!("{name}:{}", index + 1), line.to_string()))
        .collect()
}

#[test]
fn documentation_avoids_the_phrases_of_the_glossary() {
    let root = repository();
    let mut pages = files_below(&root.join("docs"), "md");
    pages.retain(|page| !page.ends_with("docs/glossary.md"));
    pages.extend(["README.md", "ARCHITECTURE.md"].map(|page| root.join(page)));
    assert!(pages.len() > 30, "{} pages", pages.len());
    assert_plain(pages.iter().flat_map(|page| numbered_lines(page)));
    // The changelog quotes former names of keys and flags as code.
    let changes = numbered_lines(&root.join("CHANGELOG.md")).into_iter();
    assert_plain(changes.map(|(place, line)| (place, line.split('`').step_by(2).collect::<String>())));
}

#[test]
fn messages_in_the_source_avoid_the_phrases_of_the_glossary() {
    let mut sources = files_below(&repository().join("crates"), "rs");
    sources.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
    let lines =
        sources.iter().filter(|path| !path.to_string_lossy().contains("hotseat-testkit")).flat_map(|path| {
            let lines = numbered_lines(path).into_iter();
            let code = lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]");
            let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
            code.flat_map(|(place, line)| messages(&line).into_iter().map(move |text| (place.clone(), text)))
        });
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() > 2_000, "{} messages", lines.len());
    assert_plain(lines);
}

#[test]
fn help_avoids_the_phrases_of_the_glossary() {
    let help = |args: &[&str]| {
        let output = Command::new(HOTSEAT).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let overview = help(&["--help"]);
    let (_, commands) = overview.split_once("Commands:").expect("the help lists commands");
    let commands = commands.lines().skip(1).take_while(|line| !line.trim().is_empty());
    // A description that does not fit continues below its column.
    let commands = commands.filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"test") && names.contains(&"recheck"), "{names:?}");
    let mut lines: Vec<(String, String)> =
        overview.lines().map(|line| ("--help".into(), line.into())).collect();
    for name in names.into_iter().filter(|name| *name != "help") {
        lines.extend(help(&[name, "--help"]).lines().map(|line| (format!("{name} --help"), line.into())));
    }
    assert_plain(lines);
}

#[test]
fn each_phrase_is_found_in_a_sentence() {
    let phrases = phrases_to_avoid();
    assert!(phrases.len() > 30, "{phrases:?}");
    for phrase in &phrases {
        let sentence = format!("Here \"{}\", for example.", phrase.join(" "));
        assert!(phrase_in(&sentence, &phrases).is_some(), "{sentence}");
    }
    assert_eq!(phrase_in("The run continues.", &phrases), None);
    let found = messages(r#"a("one {two} three", 'x', "say \"no one\" here", "word")"#);
    assert_eq!(found, ["one ___ three", r#"say \"no one\" here"#]);
}
