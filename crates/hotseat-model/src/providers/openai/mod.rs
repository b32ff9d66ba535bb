//! Chat completions.

mod body;
pub(super) mod reading;

use super::call::call;
use super::connector::{Connector, Secret};
use super::http::Connection;
use crate::{Answering, Model, Request, Sink};

/// A model behind chat completions.
pub(super) struct OpenAi {
    connector: Connector,
    connection: Connection,
}

impl OpenAi {
    pub(super) const ROUTE: &[&str] = &["chat", "completions"];

    pub(super) fn headers(connector: &Connector) -> Vec<(String, Secret)> {
        let key = connector.key.as_ref();
        key.map(|key| ("authorization".to_owned(), format!("Bearer {}", key.reveal()).into()))
            .into_iter()
            .collect()
    }

    pub(super) fn new(connector: Connector, connection: Connection) -> Self {
        OpenAi { connector, connection }
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.connector.model
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let knows_new_limit = self.connection.host() == Some("api.openai.com");
            let body = body::body(&self.connector, request, knows_new_limit);
            let reading = reading::OpenAiReading::new(self.connection.shown_url(), request);
            call(&self.connection, &body, request, reading, sink).await
        })
    }
}
