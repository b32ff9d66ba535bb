//! What an example does: async closures of tests, and what they come to.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use super::place::At;
use super::test::Test;

/// What an example may return: nothing, or a `Result` whose error fails it.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("reads its message from a file", async |t| -> std::io::Result<()> {
///     t.user.says(std::fs::read_to_string("message.txt")?).await;
///     Ok(())
/// });
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "an example returns nothing or a `Result<(), E>` whose error can be shown, not `{Self}`",
    note = "put a `;` behind the last line of the example"
)]
pub trait Outcome {
    /// The error in words, if it is one.
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

/// What a function returns, by which the type of what never returns has a name.
#[doc(hidden)]
pub trait Returns {
    /// That type.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

/// An example may end by leaving itself out, or by a panic.
impl Outcome for <fn() -> ! as Returns>::Output {
    fn error(self) -> Option<String> {
        self
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// An async closure of a test, whatever its type is.
pub(super) trait Run: Send + Sync {
    /// Runs it; the error that it returns, in words.
    fn run<'a>(&'a self, test: Test) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>>;

    /// Where it is written.
    fn at(&self) -> At;
}

/// An async closure that returns `O`.
pub(super) struct Bodied<F, O> {
    function: F,
    at: At,
    returns: PhantomData<fn() -> O>,
}

impl<F, O> Bodied<F, O> {
    pub(super) fn new(function: F, at: At) -> Self {
        Bodied { function, at, returns: PhantomData }
    }
}

impl<F, O> Run for Bodied<F, O>
where
    F: AsyncFn(Test) -> O + Send + Sync,
    O: Outcome,
{
    fn run<'a>(&'a self, test: Test) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        Box::pin(async move { (self.function)(test).await.error() })
    }

    fn at(&self) -> At {
        self.at
    }
}
