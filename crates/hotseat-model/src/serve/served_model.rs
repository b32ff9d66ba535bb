//! The definition of a served model: what answers, and faults.

use std::sync::Arc;

use super::cassette::{RecordTarget, ReplaySource};
use super::faults::ModelFault;
use super::relay::ModelRelay;
use crate::Model;

/// A model that a conversation can reach.
#[derive(Clone)]
pub struct ServedModel {
    /// What answers.
    pub source: ServedSource,
    /// Faults. The first rule that selects a call applies; rules after it count the call, too.
    pub faults: Vec<ModelFault>,
}

/// What answers the requests to a served model.
#[derive(Clone)]
pub enum ServedSource {
    /// A model, in all protocols.
    Model(Arc<dyn Model>),
    /// A provider, whose answers may be recorded.
    Relay(Arc<ModelRelay>, Option<RecordTarget>),
    /// A recording.
    Replay(ReplaySource),
}

impl ServedModel {
    /// Creates a served model without faults.
    pub fn new(model: Arc<dyn Model>) -> Self {
        ServedModel { source: ServedSource::Model(model), faults: Vec::new() }
    }
}
