//! Personas: prompt, tools and workflows of an agent.

use std::sync::Arc;

use hotseat_model::setters;
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
    setters! {
        /// Sets the system prompt.
        system(self, prompt: &str) => self.system_prompt = prompt.to_string();
        /// Adds a tool.
        tool(self, tool: ToolDefinition) => self.tools.push(tool);
        /// Sets the model.
        profile(self, profile: ModelProfile) => self.profile = profile;
        /// Sets the workflow that builds requests.
        context_assembly(self, workflow: &WorkflowDefinition) =>
            self.context_assembly = Some(DefinitionRef::Embedded(Arc::new(workflow.clone())));
        /// Sets the workflow that extracts memories.
        memory_extraction(self, workflow: &WorkflowDefinition) =>
            self.memory_extraction = Some(DefinitionRef::Embedded(Arc::new(workflow.clone())));
        /// Sets the number of earlier turns in requests.
        recent_turns(self, limit: usize) => self.recent_turns_limit = limit;
        /// Sets the maximum number of moves of a turn.
        max_moves(self, limit: u32) => self.max_moves_per_turn = Some(limit);
        /// Sets the times at which requests are built.
        context_policy(self, policy: ContextPolicy) => self.context_policy = policy;
        /// Allows the agent to decline calls of other agents.
        may_decline(self) => self.may_decline = true;
    }
}
