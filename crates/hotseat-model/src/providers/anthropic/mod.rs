//! Anthropic's messages.

mod body;
pub(super) mod reading;

use super::call::call;
use super::connector::{Connector, Secret};
use super::http::Connection;
use crate::{Answering, Model, Request, Sink};

/// A model behind the messages API.
pub(super) struct Anthropic {
    connector: Connector,
    connection: Connection,
}

impl Anthropic {
    pub(super) const ROUTE: &[&str] = &["v1", "messages"];

    pub(super) fn headers(connector: &Connector) -> Vec<(String, Secret)> {
        let version = ("anthropic-version".to_owned(), "2023-06-01".into());
        let key = connector.key.as_ref().map(|key| ("x-api-key".to_owned(), key.clone()));
        std::iter::once(version).chain(key).collect()
    }

    pub(super) fn new(connector: Connector, connection: Connection) -> Self {
        Anthropic { connector, connection }
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.connector.model
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let body = body::body(&self.connector, request);
            let reading = reading::AnthropicReading::new(self.connection.shown_url(), request);
            call(&self.connection, &body, request, reading, sink).await
        })
    }
}
