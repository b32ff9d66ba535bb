//! Names that were probably meant by misspelt ones.

/// Returns advice about an unknown name: the candidate that was probably meant, or else `otherwise`.
pub fn nearest_or<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    nearest(written, candidates).map_or_else(otherwise, suggestion)
}

/// Advice to write a name in place of a misspelt one.
pub(super) fn suggestion(near: &str) -> String {
    format!("did you mean `{near}`?")
}

/// Returns the candidate closest to a misspelt word, if one is close enough.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_WORD_BYTES: usize = 64;
    if written.len() > MAX_WORD_BYTES {
        return None;
    }
    // Treats `timeoutMs`, `timeout-ms` and `timeout_ms` as equal.
    let fold = |text: &str| -> String {
        text.chars()
            .filter(|character| !matches!(character, '_' | '-'))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let written = fold(written);
    let most = (written.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&written, &fold(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= most && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
