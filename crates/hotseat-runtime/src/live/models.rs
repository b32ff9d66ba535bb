//! Models of a host.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::Model;

/// Models of a host, by profile id.
#[derive(Clone, Default)]
pub struct ModelRegistry {
    by_profile: BTreeMap<Arc<str>, Arc<dyn Model>>,
    fallback: Option<Arc<dyn Model>>,
}

impl ModelRegistry {
    /// Uses one model for all profiles.
    pub fn single(model: impl Model + 'static) -> Self {
        ModelRegistry { by_profile: BTreeMap::new(), fallback: Some(Arc::new(model)) }
    }

    /// Sets the model of a profile.
    #[must_use]
    pub fn with_model(mut self, profile: &str, model: Arc<dyn Model>) -> Self {
        self.by_profile.insert(profile.into(), model);
        self
    }

    /// Returns the model of a profile.
    pub fn get(&self, profile: &str) -> Option<&Arc<dyn Model>> {
        self.by_profile.get(profile).or(self.fallback.as_ref())
    }
}
