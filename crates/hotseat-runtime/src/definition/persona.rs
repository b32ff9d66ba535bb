//! Personas: prompt, tools and workflows of an agent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DefinitionRef, ToolDefinition, WorkflowDefinition};

/// Stateless configuration that several agents can share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Persona {
    /// The name. The id of the agent is its lower-case form.
    pub name: String,
    /// The system prompt.
    pub system_prompt: String,
    /// The model.
    pub profile: ModelProfile,
    /// The tools.
    pub tools: Vec<ToolDefinition>,
    /// Workflow that builds requests; `None` selects the built-in one.
    pub context_assembly: Option<DefinitionRef<WorkflowDefinition>>,
    /// Workflow that extracts memories from a turn; `None` extracts nothing.
    pub memory_extraction: Option<DefinitionRef<WorkflowDefinition>>,
    /// Number of earlier turns included in requests.
    pub recent_turns_limit: usize,
    /// Maximum number of moves of a turn; at the last one the model must answer without tools.
    pub max_moves_per_turn: Option<u32>,
    /// Times at which requests are built.
    pub context_policy: ContextPolicy,
    /// True if the agent may decline calls of other agents.
    pub may_decline: bool,
}

/// A model and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelProfile {
    /// Id of the profile, used in events.
    pub id: Arc<str>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum length of a reply, in tokens.
    pub max_tokens: Option<u32>,
}

/// Times at which requests are built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextPolicy {
    /// Before every model call.
    #[default]
    PerModelCall,
    /// Once per turn; later messages of the turn are appended.
    PerTurn,
}

/// Creates a persona with default settings.
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
    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, prompt: &str) -> Self {
        self.system_prompt = prompt.to_string();
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: ToolDefinition) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the workflow that builds requests.
    #[must_use]
    pub fn context_assembly(mut self, workflow: &WorkflowDefinition) -> Self {
        self.context_assembly = Some(DefinitionRef::Embedded(Arc::new(workflow.clone())));
        self
    }

    /// Sets the workflow that extracts memories.
    #[must_use]
    pub fn memory_extraction(mut self, workflow: &WorkflowDefinition) -> Self {
        self.memory_extraction = Some(DefinitionRef::Embedded(Arc::new(workflow.clone())));
        self
    }

    /// Sets the number of earlier turns in requests.
    #[must_use]
    pub fn recent_turns(mut self, limit: usize) -> Self {
        self.recent_turns_limit = limit;
        self
    }

    /// Sets the maximum number of moves of a turn.
    #[must_use]
    pub fn max_moves(mut self, limit: u32) -> Self {
        self.max_moves_per_turn = Some(limit);
        self
    }

    /// Sets the times at which requests are built.
    #[must_use]
    pub fn context_policy(mut self, policy: ContextPolicy) -> Self {
        self.context_policy = policy;
        self
    }

    /// Allows the agent to decline calls of other agents.
    #[must_use]
    pub fn may_decline(mut self) -> Self {
        self.may_decline = true;
        self
    }
}
