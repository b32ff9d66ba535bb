//! OpenAI's Responses, served to agents.

mod parser;
mod served_reply;
mod served_request;

pub(super) use parser::ResponsesParser;
pub(super) use served_reply::{ResponsesReplyWriter, response_of_item, responses_reply, sent_items};
pub(super) use served_request::read_responses_request;
