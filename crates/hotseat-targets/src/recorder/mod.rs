//! The recorder that all targets write to: it redacts, numbers and stamps events, and counts what an agent sends.

mod clock;
mod depth_limit;
mod header_secrets;
mod inbox;
mod member_secrets;
mod redact;
mod shared_events;
mod spending;
mod trace_recorder;
mod traffic;

pub(crate) use clock::StartTimes;
pub use clock::{SessionClock, wall_millis};
pub use header_secrets::{address_secrets, header_secrets, is_secret};
pub use inbox::EventInbox;
pub use member_secrets::{collect_secrets, printed_secrets};
pub use redact::{REDACTION_MARK, SecretRedactor, redacted_names};
pub use shared_events::SharedEvents;
pub use spending::{ModelPrices, reported_tokens};
pub(crate) use spending::{add_usage, reports_no_output};
pub use trace_recorder::TraceRecorder;
pub use traffic::{RunTraffic, TrafficBounds, TrafficLimits, TrafficMeter};
