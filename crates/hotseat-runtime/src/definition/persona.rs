//! Personas: what an agent is told, what it can do and which workflows serve it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Reference, Tool, Workflow};

/// Configuration that any number of agents can share. It has no state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Persona {
    /// Its name; the agent made from it is called by its lower-case form.
    pub name: String,
    /// What the model is told about itself.
    pub system_prompt: String,
    /// The model that speaks.
    pub profile: ModelProfile,
    /// What it can do.
    pub tools: Vec<Tool>,
    /// The workflow that builds requests; the built-in one if there is none.
    pub context_assembly: Option<Reference<Workflow>>,
    /// The workflow that keeps what a turn has brought; a built-in one that keeps nothing if there is none.
    pub memory_extraction: Option<Reference<Workflow>>,
    /// How many earlier turns context assembly is told of.
    pub recent_turns_limit: usize,
    /// How many moves a turn may have before the model must answer without tools.
    pub max_moves_per_turn: Option<u32>,
    /// When requests are built.
    pub context_policy: ContextPolicy,
    /// Whether this agent, when another one calls it, may decline.
    pub may_decline: bool,
}

/// A model with how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelProfile {
    /// What events call it.
    pub id: Arc<str>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// The longest reply, in tokens.
    pub max_tokens: Option<u32>,
}

/// When the request for a model call is built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextPolicy {
    /// Before every model call.
    #[default]
    PerModelCall,
    /// Once a turn; what happens in the turn is added to it.
    PerTurn,
}

/// A persona with nothing but a name.
pub fn persona(name: &str) -> Persona {
    Persona {
        name: name.to_string(),
        system_prompt: String::new(),
        profile: ModelProfile { id: "default".into(), temperature: None, max_tokens: None },
        tools: Vec::new(),
        context_assembly: None,
        memory_extraction: None,
        recent_turns_limit: 20,
        max_moves_per_turn: None,
        context_policy: ContextPolicy::default(),
        may_decline: false,
    }
}

impl Persona {
    /// With this system prompt.
    #[must_use]
    pub fn system(mut self, prompt: &str) -> Self {
        self.system_prompt = prompt.to_string();
        self
    }

    /// With one more tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Spoken by this model.
    #[must_use]
    pub fn profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// With requests built by this workflow.
    #[must_use]
    pub fn context_assembly(mut self, workflow: &Workflow) -> Self {
        self.context_assembly = Some(Reference::Embedded(Arc::new(workflow.clone())));
        self
    }

    /// With what a turn brings kept by this workflow.
    #[must_use]
    pub fn memory_extraction(mut self, workflow: &Workflow) -> Self {
        self.memory_extraction = Some(Reference::Embedded(Arc::new(workflow.clone())));
        self
    }

    /// With this many earlier turns in its requests.
    #[must_use]
    pub fn recent_turns(mut self, limit: usize) -> Self {
        self.recent_turns_limit = limit;
        self
    }

    /// With at most this many moves a turn.
    #[must_use]
    pub fn max_moves(mut self, limit: u32) -> Self {
        self.max_moves_per_turn = Some(limit);
        self
    }

    /// With requests built at these times.
    #[must_use]
    pub fn context_policy(mut self, policy: ContextPolicy) -> Self {
        self.context_policy = policy;
        self
    }

    /// Allowed to decline what another agent asks of it.
    #[must_use]
    pub fn may_decline(mut self) -> Self {
        self.may_decline = true;
        self
    }
}
