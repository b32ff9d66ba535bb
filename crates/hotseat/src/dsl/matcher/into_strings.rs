//! One text or several, as arguments of matchers.

/// One text or several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a text nor a list of texts",
    label = "expected a text or a list of texts",
    note = "write `\"friendly\"`, or `[\"friendly\", \"helpful\"]`"
)]
pub trait IntoStrings {
    /// Returns all texts.
    fn into_strings(self) -> Vec<String>;
}

impl IntoStrings for &str {
    fn into_strings(self) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl IntoStrings for String {
    fn into_strings(self) -> Vec<String> {
        vec![self]
    }
}

impl<T: Into<String>> IntoStrings for Vec<T> {
    fn into_strings(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<String>, const N: usize> IntoStrings for [T; N] {
    fn into_strings(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}
