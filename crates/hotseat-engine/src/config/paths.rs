//! What words of the command line mean: files, parts of files, parts of names.

use std::path::{Path, PathBuf};

/// The cases of a suite that a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuitePart<'a> {
    /// Those at a line.
    Line(u32),
    /// Those with an id or a name.
    Name(&'a str),
}

/// Splits `FILE:LINE`, `FILE:LINE:COLUMN` and `FILE::NAME`.
pub fn split_part(written: &str) -> Option<(&str, SuitePart<'_>)> {
    let split = match written.split_once("::") {
        Some((file, name)) if !name.is_empty() => Some((file, SuitePart::Name(name))),
        Some(_) => None,
        None => {
            let (file, last) = written.rsplit_once(':')?;
            let last: u32 = last.parse().ok()?;
            let line = file.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
            let (file, line) = line.unwrap_or((file, last));
            Some((file, SuitePart::Line(line)))
        }
    };
    split.filter(|(file, _)| !file.is_empty())
}

/// True if a word of the command line selects cases by a part of their name: it is neither a path that exists, nor
/// written like a path or a glob. A word with blanks is never a glob.
pub fn is_case_word(written: &str, folder: &Path) -> bool {
    const EXTENSIONS: [&str; 10] =
        [".yaml", ".yml", ".json", ".jsonl", ".ts", ".mts", ".js", ".mjs", ".rs", ".py"];
    let is_sentence = written.contains(char::is_whitespace);
    let is_path = written.is_empty()
        || written.contains(['/', '\\'])
        || EXTENSIONS.iter().any(|extension| written.ends_with(extension))
        || split_part(written).is_some()
        || !is_sentence && written.contains(['*', '?', '[', '{']);
    !is_path && !folder.join(written).exists()
}

/// Displayable path, relative to the folder if it is inside.
pub fn display_path(path: &Path, folder: &Path) -> String {
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let relative: PathBuf =
        if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative.to_path_buf() };
    relative.to_string_lossy().into_owned()
}
