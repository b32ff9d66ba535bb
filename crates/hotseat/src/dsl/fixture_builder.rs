//! Builders of fixtures: async closures that take the test for which a value is created.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::conversation::lock;
use super::fixture::Fixture;
use super::test::Test;

type FixtureFuture<'a> = Pin<Box<dyn Future<Output = Rc<dyn Any>> + 'a>>;

/// Type-erased async builder of a fixture.
trait FixtureBuilder: Send + Sync {
    fn build<'a>(&'a self, test: Test) -> FixtureFuture<'a>;
}

/// Builds a fixture with an async closure.
struct AsyncFixtureBuilder<F, V> {
    function: F,
    value: PhantomData<fn() -> V>,
}

impl<F, V> FixtureBuilder for AsyncFixtureBuilder<F, V>
where
    F: AsyncFn(Test) -> V + Send + Sync,
    V: 'static,
{
    fn build<'a>(&'a self, test: Test) -> FixtureFuture<'a> {
        Box::pin(async move { Rc::new((self.function)(test).await) as Rc<dyn Any> })
    }
}

/// Builders of all declared fixtures. A [`Fixture`] is an index into this list, so it can be copied into any
/// number of examples.
static BUILDERS: Mutex<Vec<Arc<dyn FixtureBuilder>>> = Mutex::new(Vec::new());

/// Declares a fixture that an async closure builds.
pub(super) fn declare_fixture<F, V>(function: F) -> Fixture<V>
where
    F: AsyncFn(Test) -> V + Send + Sync + 'static,
    V: 'static,
{
    let mut all = lock(&BUILDERS);
    all.push(Arc::new(AsyncFixtureBuilder { function, value: PhantomData }));
    Fixture::new(all.len() - 1)
}

impl Test {
    /// Returns the value of a fixture, building it on first use. Panics if the fixture depends on itself.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// let today = g.fixture(async |_| "2026-01-31".to_string());
    ///
    /// g.it("knows the day", async move |t| {
    ///     let today = t.get(today).await;
    ///     t.user.says(format!("Today is {today}. A room for tomorrow, please.")).await;
    /// });
    /// # }
    /// ```
    pub async fn get<V: 'static>(&self, fixture: Fixture<V>) -> Rc<V> {
        if self.fixtures_in_progress.contains(&fixture.id) {
            panic!("the fixture of type `{}` depends on itself", std::any::type_name::<V>());
        }
        let cell = self.fixture_values.borrow_mut().entry(fixture.id).or_default().clone();
        let build = async || {
            let builder = lock(&BUILDERS)[fixture.id].clone();
            let mut test = self.clone();
            test.fixtures_in_progress.push(fixture.id);
            builder.build(test).await
        };
        let value = cell.get_or_init(build).await.clone();
        value.downcast().unwrap_or_else(|_| unreachable!("the type of a fixture is known"))
    }
}
