//! Values that each example makes anew.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::test::Test;

/// A value that each example makes anew when it asks for it first; see [`Group::fixture`](super::Group::fixture).
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

type Building<'a> = Pin<Box<dyn Future<Output = Rc<dyn Any>> + 'a>>;

/// How such a value is made.
pub(super) trait Builds: Send + Sync {
    fn build<'a>(&'a self, test: Test) -> Building<'a>;
}

/// An async closure that makes one.
pub(super) struct Build<F, V> {
    function: F,
    value: PhantomData<fn() -> V>,
}

impl<F, V> Build<F, V>
where
    F: AsyncFn(Test) -> V + Send + Sync + 'static,
    V: 'static,
{
    pub(super) fn by(function: F) -> Arc<dyn Builds> {
        Arc::new(Build { function, value: PhantomData })
    }
}

impl<F, V> Builds for Build<F, V>
where
    F: AsyncFn(Test) -> V + Send + Sync,
    V: 'static,
{
    fn build<'a>(&'a self, test: Test) -> Building<'a> {
        Box::pin(async move { Rc::new((self.function)(test).await) as Rc<dyn Any> })
    }
}

/// All of them that the program has declared, so that a fixture can be copied into any number of examples.
static ALL: Mutex<Vec<Arc<dyn Builds>>> = Mutex::new(Vec::new());

impl<V: 'static> Fixture<V> {
    pub(super) fn new(builds: Arc<dyn Builds>) -> Fixture<V> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(builds);
        Fixture { id: all.len() - 1, value: PhantomData }
    }

    /// As it is known by its type.
    pub(super) fn known(self, depth: usize) -> KnownFixture {
        KnownFixture { of: TypeId::of::<V>(), id: self.id, depth }
    }

    /// The fixture that has values of this type.
    ///
    /// # Errors
    /// When there is none, or a group has several, in words.
    pub(super) fn by_type(known: &[KnownFixture]) -> Result<Fixture<V>, String> {
        let name = std::any::type_name::<V>();
        let fitting: Vec<&KnownFixture> =
            known.iter().filter(|fixture| fixture.of == TypeId::of::<V>()).collect();
        let innermost = fitting.iter().map(|fixture| fixture.depth).max();
        let mut innermost = fitting.iter().filter(|fixture| Some(fixture.depth) == innermost);
        match (innermost.next(), innermost.next()) {
            (Some(fixture), None) => Ok(Fixture { id: fixture.id, value: PhantomData }),
            (None, _) => Err(format!(
                "no group around this example has a fixture of type `{name}`: `g.fixture(async |_| …)` in a `#[setup]` makes one"
            )),
            (Some(_), Some(_)) => Err(format!(
                "a group around this example has several fixtures of type `{name}`: give each a type of its own"
            )),
        }
    }

    pub(super) async fn of(self, test: &Test) -> Rc<V> {
        let known = test.values.borrow().get(&self.id).cloned();
        let value = match known {
            Some(Made::Value(value)) => value,
            Some(Made::NotYet) => panic!("a fixture asks for itself while it is being made"),
            None => {
                test.values.borrow_mut().insert(self.id, Made::NotYet);
                let builds = ALL.lock().unwrap_or_else(PoisonError::into_inner)[self.id].clone();
                let value = builds.build(test.clone()).await;
                test.values.borrow_mut().insert(self.id, Made::Value(value.clone()));
                value
            }
        };
        value.downcast().unwrap_or_else(|_| unreachable!("a fixture knows its type"))
    }
}

/// A fixture of a group, known by its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFixture {
    of: TypeId,
    id: usize,
    /// How deep its group is.
    depth: usize,
}

/// The values that an example has made.
pub(super) type Values = HashMap<usize, Made>;

/// A value of an example.
#[derive(Clone)]
pub(super) enum Made {
    NotYet,
    Value(Rc<dyn Any>),
}
