//! What all protocols share: the served agent, and one exchange with a client as protocol-independent updates.

mod agent;
mod exchange;
mod histories;
mod members;
mod request_error;
mod translate;

pub use agent::{ConversationLease, ServedAgent};
pub use exchange::{
    ClientExchange, ClientInput, ClientToolAnswer, ExchangeEnd, ExchangeStep, PendingClientCall,
    client_calls, host_error, is_user_turn, open_approvals, open_questions,
};
pub use members::{
    check_id, check_user_text, client_tool, client_tools, content_string, describe_problem, nullable,
    parse_body, parse_json, parse_member, repeated_result,
};
pub use request_error::{RequestError, RequestErrorKind};
pub use translate::{
    ApprovalPrompt, ClientUpdate, Speaker, TurnFailure, UsageByModel, arguments_text, is_within_call,
    message_id, result_id,
};
