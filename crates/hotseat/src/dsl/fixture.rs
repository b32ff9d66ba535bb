//! Fixtures: values that are created once per example, on first use.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::test::Test;

/// A value that each example creates on first use; see [`Group::fixture`](super::Group::fixture).
pub struct Fixture<V> {
    id: usize,
    value: PhantomData<fn() -> V>,
}

impl<V> Clone for Fixture<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Fixture<V> {}

type FixtureFuture<'a> = Pin<Box<dyn Future<Output = Rc<dyn Any>> + 'a>>;

/// Type-erased async builder of a fixture.
pub(super) trait FixtureBuilder: Send + Sync {
    fn build<'a>(&'a self, test: Test) -> FixtureFuture<'a>;
}

/// Builds a fixture with an async closure.
pub(super) struct AsyncFixtureBuilder<F, V> {
    function: F,
    value: PhantomData<fn() -> V>,
}

impl<F, V> AsyncFixtureBuilder<F, V>
where
    F: AsyncFn(Test) -> V + Send + Sync + 'static,
    V: 'static,
{
    pub(super) fn new_shared(function: F) -> Arc<dyn FixtureBuilder> {
        Arc::new(AsyncFixtureBuilder { function, value: PhantomData })
    }
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

impl<V: 'static> Fixture<V> {
    pub(super) fn new(builds: Arc<dyn FixtureBuilder>) -> Fixture<V> {
        let mut all = BUILDERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(builds);
        Fixture { id: all.len() - 1, value: PhantomData }
    }

    /// Returns the type and depth of the fixture, for lookup by type.
    pub(super) fn declared(self, depth: usize) -> DeclaredFixture {
        DeclaredFixture { value_type: TypeId::of::<V>(), id: self.id, depth }
    }

    /// Finds the fixture with values of this type in the innermost group.
    ///
    /// # Errors
    /// If there is none, or the group has several: the message.
    pub(super) fn find_by_type(known: &[DeclaredFixture]) -> Result<Fixture<V>, String> {
        let name = std::any::type_name::<V>();
        let fitting: Vec<&DeclaredFixture> =
            known.iter().filter(|fixture| fixture.value_type == TypeId::of::<V>()).collect();
        let innermost = fitting.iter().map(|fixture| fixture.depth).max();
        let mut innermost = fitting.iter().filter(|fixture| Some(fixture.depth) == innermost);
        match (innermost.next(), innermost.next()) {
            (Some(fixture), None) => Ok(Fixture { id: fixture.id, value: PhantomData }),
            (None, _) => Err(format!(
                "no enclosing group has a fixture of type `{name}`: declare one with `g.fixture(async |_| …)` in a `#[setup]` function"
            )),
            (Some(_), Some(_)) => Err(format!(
                "an enclosing group has several fixtures of type `{name}`: use a different type for each"
            )),
        }
    }

    pub(super) async fn resolve(self, test: &Test) -> Rc<V> {
        let known = test.fixture_values.borrow().get(&self.id).cloned();
        let value = match known {
            Some(FixtureState::Value(value)) => value,
            Some(FixtureState::InProgress) => panic!("a fixture depends on itself"),
            None => {
                test.fixture_values.borrow_mut().insert(self.id, FixtureState::InProgress);
                let builds = BUILDERS.lock().unwrap_or_else(PoisonError::into_inner)[self.id].clone();
                let value = builds.build(test.clone()).await;
                test.fixture_values.borrow_mut().insert(self.id, FixtureState::Value(value.clone()));
                value
            }
        };
        value.downcast().unwrap_or_else(|_| unreachable!("the type of a fixture is known"))
    }
}

/// A fixture declared by a group, for lookup by type.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredFixture {
    value_type: TypeId,
    id: usize,
    /// Nesting depth of the group.
    depth: usize,
}

/// Fixtures that an example has built, by index.
pub(super) type FixtureValues = HashMap<usize, FixtureState>;

/// Whether a fixture is being built or is ready.
#[derive(Clone)]
pub(super) enum FixtureState {
    InProgress,
    Value(Rc<dyn Any>),
}
