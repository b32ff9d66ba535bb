//! Fixtures: values that are created once per example, on first use.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

use tokio::sync::OnceCell;

/// A value that each example creates on first use; see [`Group::fixture`](super::Group::fixture).
pub struct Fixture<V> {
    /// Index into the list of builders.
    pub(super) id: usize,
    value: PhantomData<fn() -> V>,
}

impl<V> Clone for Fixture<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Fixture<V> {}

impl<V: 'static> Fixture<V> {
    pub(super) fn new(id: usize) -> Fixture<V> {
        Fixture { id, value: PhantomData }
    }

    /// Returns the type and depth of the fixture, for lookup by type.
    pub(super) fn declared(self, depth: usize) -> DeclaredFixture {
        DeclaredFixture { value_type: TypeId::of::<V>(), id: self.id, depth }
    }

    /// Finds the fixture with values of this type in the innermost group. Fails if there is none, or the
    /// group has several: the message.
    pub(super) fn find_by_type(known: &[DeclaredFixture]) -> Result<Fixture<V>, String> {
        let name = std::any::type_name::<V>();
        let fitting: Vec<&DeclaredFixture> =
            known.iter().filter(|fixture| fixture.value_type == TypeId::of::<V>()).collect();
        let innermost = fitting.iter().map(|fixture| fixture.depth).max();
        let mut innermost = fitting.iter().filter(|fixture| Some(fixture.depth) == innermost);
        match (innermost.next(), innermost.next()) {
            (Some(fixture), None) => Ok(Fixture::new(fixture.id)),
            (None, _) => Err(format!(
                "no enclosing group has a fixture of type `{name}`: declare one with `g.fixture(async |_| …)` in a `#[setup]` function"
            )),
            (Some(_), Some(_)) => Err(format!(
                "an enclosing group has several fixtures of type `{name}`: use a different type for each"
            )),
        }
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

/// Fixtures that an example has asked for, by index. A fixture that is asked for while it is built is awaited.
pub(super) type FixtureValues = HashMap<usize, Rc<OnceCell<Rc<dyn Any>>>>;
