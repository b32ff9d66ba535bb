//! The records of one conversation, typed and untyped.

use std::ops::Deref;
use std::sync::Arc;

use super::Trace;
use crate::{Offset, Payload, Record};

/// One conversation of a trace, with the workflows that ran for it.
#[derive(Debug, Clone)]
pub struct View<'a> {
    trace: &'a Trace,
    conversation: Option<Arc<str>>,
    records: Arc<[&'a Record]>,
}

/// A record whose members are of a known type.
#[derive(Debug)]
pub struct Typed<'a, P> {
    /// Its place in the trace.
    pub sequence: u64,
    /// When it happened.
    pub offset: Offset,
    /// Its members.
    pub payload: &'a P,
    /// All of it.
    pub record: &'a Record,
}

impl<P> Clone for Typed<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Typed<'_, P> {}

impl<P> Deref for Typed<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        self.payload
    }
}

impl<'a> View<'a> {
    pub(super) fn new(trace: &'a Trace, conversation: Option<Arc<str>>) -> Self {
        let records =
            trace.records.iter().filter(|record| trace.owner(record) == conversation.as_ref()).collect();
        View { trace, conversation, records }
    }

    /// The whole trace.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The conversation; none where an adapter wrote the trace.
    pub fn id(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// The records, in order.
    pub fn records(&self) -> impl Iterator<Item = &'a Record> + Clone + use<'a> {
        let records = self.records.clone();
        (0..records.len()).map(move |place| records[place])
    }

    /// The records of one event type, for instance `tool.invoked`.
    pub fn by_type<'t>(&self, name: &'t str) -> impl Iterator<Item = &'a Record> + Clone + use<'a, 't> {
        self.records().filter(move |record| record.payload.type_name() == name)
    }

    /// The records whose type begins with this word, for instance `tool`.
    pub fn by_category<'t>(&self, name: &'t str) -> impl Iterator<Item = &'a Record> + Clone + use<'a, 't> {
        self.records().filter(move |record| record.payload.category() == name)
    }

    /// The records of one turn.
    pub fn by_turn<'t>(&self, turn_id: &'t str) -> impl Iterator<Item = &'a Record> + Clone + use<'a, 't> {
        self.records().filter(move |record| record.payload.turn_id().is_some_and(|id| &**id == turn_id))
    }

    /// How many records of one type there are.
    pub fn count(&self, name: &str) -> usize {
        self.by_type(name).count()
    }

    /// Whether there is a record of this type.
    pub fn has(&self, name: &str) -> bool {
        self.by_type(name).next().is_some()
    }

    /// The records that `members` recognises.
    pub(crate) fn pick<P>(&self, members: impl Fn(&'a Payload) -> Option<&'a P>) -> Vec<Typed<'a, P>> {
        self.records()
            .filter_map(|record| {
                members(&record.payload).map(|payload| Typed {
                    sequence: record.sequence,
                    offset: record.offset,
                    payload,
                    record,
                })
            })
            .collect()
    }
}

/// The members of every record of the given event types, which share one type of members.
macro_rules! pick {
    ($view:expr, $($variant:ident)|+) => {
        $view.pick(|payload| match payload {
            $($crate::Payload::$variant(members) => Some(members),)+
            _ => None,
        })
    };
}

pub(crate) use pick;
