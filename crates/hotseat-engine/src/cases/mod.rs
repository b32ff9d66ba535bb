//! Case files: decodes documents into test cases.
//!
//! A case is decoded when its file is loaded, so all errors are found before anything is contacted. A case
//! that uses variables set by hooks is decoded again once they are known.

mod agent_name;
mod answer_shape;
mod assertions;
mod awaiting_markers;
mod brief;
mod case;
mod case_lines;
mod checkpoints;
mod condition;
mod content;
mod decoding;
mod from_json;
mod headers;
mod hook;
mod inherited;
mod input_sources;
mod judging;
mod limits;
mod mcp;
mod mcp_shape;
mod mcp_tools;
mod models;
mod models_shape;
mod pass_rate;
mod patterns;
mod peer_words;
mod program;
mod reliability;
mod scenarios;
mod script;
mod services;
pub mod shape;
mod shared_settings;
mod suite;
pub mod topic_shape;
mod topics;
mod variables;

pub use agent_name::{AgentName, unknown_agent};
pub use assertions::{
    ASSERT_KIND, ASSERTION, AssertionBlock, CRITERIA_KIND, CheckVocabulary, OWN_ASSERT_KIND, assertion_label,
    criterion_check, refuse_all_turns,
};
pub use awaiting_markers::AwaitingMarkers;
pub use brief::{
    DEFAULT_MAX_INPUTS, PersonaNotes, PromptFileError, PromptTemplate, SimulatedPersona, SimulatorBrief,
};
pub use case::{
    CallOptions, CaseProgram, CaseTarget, CaseTurn, ConversationOpening, ExpectedError, OnComplete, TestCase,
    TestFocus,
};
pub use case_lines::test_lines;
pub use checkpoints::Checkpoint;
pub use decoding::{AgentsByName, DecodeContext, DecodeSettings, InheritedSettings, ParseSource};
pub use from_json::{
    ProgramInputError, negate_assertion, parse_assertions, parse_brief, parse_condition, parse_messages,
    parse_topics, parse_turn, validate_simulated_user, validate_topic,
};
pub(crate) use headers::read_header_texts;
pub use hook::{HookCommand, NamedHook};
pub use input_sources::{CaseSimulator, HumanInput, OnMissingInput, PromptPolicy, TranscriptStyle};
pub use judging::{JUDGE_KIND, read_judging};
pub(crate) use limits::MILLISECONDS;
pub use limits::{from_millis, parse_duration};
pub use mcp::{
    DefinitionContext, McpFault, McpServer, McpSettings, MockAnswers, ProxyMode, RepeatHint, SHOW_CALLS,
    hidden_calls,
};
pub use mcp_shape::MCP_KIND;
pub use mcp_tools::{ListedTools, ToolReference};
pub use models::{CassetteFiles, ModelOpening, ModelSettings, PlacedFault, RelayMode};
pub use models_shape::MODELS_KIND;
pub use pass_rate::{PassRate, PassRateError, format_rate, parse_rate};
pub(crate) use pass_rate::{RATE, read_rate};
pub use peer_words::explain_project_words;
pub use program::check_group_keys;
pub(crate) use reliability::MAX_RUNS_LIMIT;
pub use reliability::{Reliability, ReliabilitySetting, read_reliability};
pub use scenarios::{CaseScenario, escape_variables, read_scenario_set, stable_id};
pub use script::{read_client_tools, read_interrupt_answers};
pub use shared_settings::SharedSettings;
pub use suite::{
    EXAMPLE_CASE, PROGRAM_EXTENSIONS, Suite, WRITTEN_SUITES, is_program, is_suite_name, is_test_script,
    parser_for,
};
pub use topic_shape::{GRAPH_TOPIC, SHARED, SIMULATE, USER};
pub use topics::{
    CaseTopics, TopicCheckPolicy, TopicDefinition, TopicSettings, TopicTrigger, read_graph, read_topics,
};
pub use variables::{
    Environment, MODEL_PREFIX, McpAddresses, VariableScope, escape, interpolate, is_variable_name,
    node_mcp_references, references, uses_hook_variables,
};
