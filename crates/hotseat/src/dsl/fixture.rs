//! Values that each example makes anew.

use std::any::Any;
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

/// The values that an example has made.
pub(super) type Values = HashMap<usize, Made>;

/// A value of an example.
#[derive(Clone)]
pub(super) enum Made {
    NotYet,
    Value(Rc<dyn Any>),
}
