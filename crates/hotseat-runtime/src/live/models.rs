//! Which model speaks.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::Model;

/// The models of a host, by the id of the profile that names them.
#[derive(Clone, Default)]
pub struct Models {
    by_profile: BTreeMap<Arc<str>, Arc<dyn Model>>,
    other: Option<Arc<dyn Model>>,
}

impl Models {
    /// One model that speaks for every profile.
    pub fn one(model: impl Model + 'static) -> Self {
        Models { by_profile: BTreeMap::new(), other: Some(Arc::new(model)) }
    }

    /// With this model for one profile.
    #[must_use]
    pub fn with(mut self, profile: &str, model: Arc<dyn Model>) -> Self {
        self.by_profile.insert(profile.into(), model);
        self
    }

    /// The model of a profile.
    pub fn get(&self, profile: &str) -> Option<&Arc<dyn Model>> {
        self.by_profile.get(profile).or(self.other.as_ref())
    }
}
