//! Revisions of the protocol, and the names and numbers that it defines.

use hotseat_trace::named;

named! {
    /// A revision of the Model Context Protocol. Mocks and replays speak all but the first one, which proxied programs may.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ProtocolRevision {
        /// `2024-11-05`: handshake, and no sessions.
        V2024November = "2024-11-05",
        /// `2025-03-26`: handshake and sessions.
        V2025March = "2025-03-26",
        /// `2025-06-18`: handshake and sessions.
        V2025June = "2025-06-18",
        /// `2025-11-25`: handshake and sessions.
        V2025November = "2025-11-25",
        /// `2026-07-28`: stateless; each request names its revision.
        V2026July = "2026-07-28",
    }
}

impl ProtocolRevision {
    /// The revisions that servers of this crate speak, the newest first.
    pub const NEWEST_FIRST: [ProtocolRevision; 4] =
        [Self::V2026July, Self::V2025November, Self::V2025June, Self::V2025March];
    /// The newest revision with a handshake, offered to clients that ask for an unknown one.
    pub const NEWEST_WITH_HANDSHAKE: ProtocolRevision = Self::V2025November;

    /// Whether mocks and replays speak the revision.
    pub fn is_served(self) -> bool {
        Self::NEWEST_FIRST.contains(&self)
    }

    /// Whether requests carry their revision themselves, without handshake and session.
    pub fn is_stateless(self) -> bool {
        self == Self::V2026July
    }
}

/// Keys of `_meta`.
pub(crate) mod meta {
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// Codes of JSON-RPC errors.
pub mod error_code {
    /// The message is no JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is JSON, but no request, notification or response.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The server does not know the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A header of HTTP is missing or contradicts the body (`2026-07-28`).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a capability that the request needs (`2026-07-28`).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The server does not speak the revision of the request (`2026-07-28`).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// The server refuses a request because a limit is reached.
    pub const LIMIT_REACHED: i64 = -32000;
    /// The resource does not exist (until `2025-11-25`).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
}
