//! Bodies of requests.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::LengthLimitError;

/// Why the body of a request was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It exceeds this number of bytes.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It was not complete after this time.
    #[error("the body did not arrive within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// The client broke off, or broke the rules of HTTP.
    #[error("the body is incomplete: {0}")]
    Broken(String),
}

impl BodyError {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            BodyError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Returns the first cause of an error: the others only say that a body could not be read.
fn innermost<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

/// Reads the body of a request.
///
/// # Errors
/// If it is too long, does not arrive `within` the time, or is incomplete.
pub async fn read_body(body: Body, max_bytes: usize, within: Duration) -> Result<Bytes, BodyError> {
    match tokio::time::timeout(within, axum::body::to_bytes(body, max_bytes)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => {
            let error = error.into_inner();
            match error.is::<LengthLimitError>() {
                true => Err(BodyError::TooLong(max_bytes)),
                false => Err(BodyError::Broken(innermost(&*error).to_string())),
            }
        }
        Err(_) => Err(BodyError::TooSlow(within)),
    }
}
