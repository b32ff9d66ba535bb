//! Async closures of tests: bodies of examples and hooks, with their return types.

use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use super::caller_location::CallerLocation;
use super::test::Test;

/// Return type of an example: `()`, or a `Result` whose error fails the example.
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
    message = "an example returns nothing or a `Result<(), E>` whose error implements `Display`, not `{Self}`",
    note = "end the last line of the example with a `;`"
)]
pub trait ExampleResult {
    /// Returns the error message, or none on success.
    fn into_error(self) -> Option<String>;
}

impl ExampleResult for () {
    fn into_error(self) -> Option<String> {
        None
    }
}

/// Names the return type of a function type, including the never type.
#[doc(hidden)]
pub trait FnOutput {
    /// The return type.
    type Output;
}

impl<T> FnOutput for fn() -> T {
    type Output = T;
}

/// An example may end with [`Test::skip`] or with a panic.
impl ExampleResult for <fn() -> ! as FnOutput>::Output {
    fn into_error(self) -> Option<String> {
        self
    }
}

impl<E: Display> ExampleResult for Result<(), E> {
    fn into_error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// Type-erased async closure of a test: the body of an example, or a hook.
pub(super) trait TestFunction: Send + Sync {
    /// Runs the closure. Returns the message of the error that it returned, if any.
    fn run<'a>(&'a self, test: Test) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>>;

    /// Source location of the closure.
    fn location(&self) -> CallerLocation;
}

/// An async closure that takes a [`Test`] and returns `O`.
pub(super) struct AsyncTestFunction<F, O> {
    function: F,
    location: CallerLocation,
    returns: PhantomData<fn() -> O>,
}

impl<F, O> AsyncTestFunction<F, O> {
    pub(super) fn new(function: F, at: CallerLocation) -> Self {
        AsyncTestFunction { function, location: at, returns: PhantomData }
    }
}

impl<F, O> TestFunction for AsyncTestFunction<F, O>
where
    F: AsyncFn(Test) -> O + Send + Sync,
    O: ExampleResult,
{
    fn run<'a>(&'a self, test: Test) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        Box::pin(async move { (self.function)(test).await.into_error() })
    }

    fn location(&self) -> CallerLocation {
        self.location
    }
}
