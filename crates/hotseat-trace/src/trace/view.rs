//! The records of one conversation.

use std::ops::Deref;
use std::sync::Arc;

use super::Trace;
use crate::{EventRecord, Payload, TimeOffset};

/// One conversation of a trace, with its workflow runs.
#[derive(Debug, Clone)]
pub struct ConversationView<'a> {
    trace: &'a Trace,
    conversation: Option<Arc<str>>,
    records: Arc<[&'a EventRecord]>,
}

/// A record with a payload of a known type.
#[derive(Debug)]
pub struct TypedRecord<'a, P> {
    /// Sequence number of the record.
    pub sequence: u64,
    /// Time of the event.
    pub offset: TimeOffset,
    /// The typed payload.
    pub payload: &'a P,
    /// The whole record.
    pub record: &'a EventRecord,
}

impl<P> Clone for TypedRecord<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for TypedRecord<'_, P> {}

impl<P> Deref for TypedRecord<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        self.payload
    }
}

impl<'a> ConversationView<'a> {
    pub(super) fn new(trace: &'a Trace, conversation: Option<Arc<str>>) -> Self {
        // Most records belong to the same execution as the one before.
        let mut last: Option<(&Arc<str>, bool)> = None;
        let belongs = |record: &&'a EventRecord| {
            let id = record.execution.as_ref().map(|execution| &execution.id);
            match (last, id) {
                (Some((known, belongs)), Some(id)) if Arc::ptr_eq(known, id) => belongs,
                _ => {
                    let belongs = trace.owner(record) == conversation.as_ref();
                    last = id.map(|id| (id, belongs));
                    belongs
                }
            }
        };
        let records = trace.records.iter().filter(belongs).collect();
        ConversationView { trace, conversation, records }
    }

    /// Returns the trace.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// Returns the id of the conversation. None for a trace written by an adapter.
    pub fn id(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// Returns the records, in order.
    pub fn records(&self) -> impl Iterator<Item = &'a EventRecord> + Clone + use<'a> {
        let records = self.records.clone();
        (0..records.len()).map(move |place| records[place])
    }

    /// Returns the records of an event type, for instance `tool.invoked`.
    pub fn by_type<'t>(&self, name: &'t str) -> impl Iterator<Item = &'a EventRecord> + Clone + use<'a, 't> {
        self.records().filter(move |record| record.payload.type_name() == name)
    }

    /// Returns the records of a turn.
    pub fn by_turn<'t>(
        &self,
        turn_id: &'t str,
    ) -> impl Iterator<Item = &'a EventRecord> + Clone + use<'a, 't> {
        self.records().filter(move |record| record.payload.turn_id().is_some_and(|id| &**id == turn_id))
    }

    /// Returns the number of records of an event type.
    pub fn count(&self, name: &str) -> usize {
        self.by_type(name).count()
    }

    /// Returns true if there is a record of this event type.
    pub fn has(&self, name: &str) -> bool {
        self.by_type(name).next().is_some()
    }

    /// Returns the records whose payload `members` selects.
    pub(crate) fn pick<P>(&self, members: impl Fn(&'a Payload) -> Option<&'a P>) -> Vec<TypedRecord<'a, P>> {
        self.records()
            .filter_map(|record| {
                members(&record.payload).map(|payload| TypedRecord {
                    sequence: record.sequence,
                    offset: record.offset,
                    payload,
                    record,
                })
            })
            .collect()
    }
}

/// Returns the typed records of the given event types, which must share a payload type.
macro_rules! pick {
    ($view:expr, $($variant:ident)|+) => {
        $view.pick(|payload| match payload {
            $($crate::Payload::$variant(members) => Some(members),)+
            _ => None,
        })
    };
}

/// Declares methods that return the typed records of an event type.
macro_rules! picks {
    ($($(#[$doc:meta])* $name:ident: $members:ident = $($variant:ident)|+;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(&self) -> Vec<TypedRecord<'a, $members>> {
                $crate::trace::view::pick!(self.0, $($variant)|+)
            }
        )+
    };
}

pub(crate) use {pick, picks};
