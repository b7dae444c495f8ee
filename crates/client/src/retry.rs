//! When a request is sent again: the server said when, or the connection broke during a read.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use crate::transport::{Body, TransportError};

/// How often a request is sent again at most, as upstream.
const MAX_RETRIES: usize = 10;
/// The wait after a broken connection, as upstream.
const BROKEN_DELAY: Duration = Duration::from_secs(1);

/// What to do after a try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Hand out the outcome.
    Finished,
    /// Wait and try again.
    Again(Duration),
}

/// Counts the tries of one request.
pub(crate) struct Retries {
    done: usize,
    is_get: bool,
    watch: bool,
}

impl Retries {
    pub(crate) fn new(method: &Method, watch: bool) -> Self {
        Self { done: 0, is_get: *method == Method::GET, watch }
    }

    pub(crate) fn is_first(&self) -> bool {
        self.done == 0
    }

    pub(crate) fn decide(&mut self, outcome: &Result<http::Response<Body>, TransportError>) -> Attempt {
        let delay = match outcome {
            Ok(response) => response_delay(response.status(), response.headers()),
            Err(error) => self.error_delay(error),
        };
        match delay {
            Some(delay) if self.done < MAX_RETRIES => {
                self.done += 1;
                Attempt::Again(delay)
            }
            _ => Attempt::Finished,
        }
    }

    fn error_delay(&self, error: &TransportError) -> Option<Duration> {
        let broken = self.is_get && error.is_connection_lost();
        let unsent = matches!(error, TransportError::NotSent);
        (broken || unsent || (self.watch && error.is_timeout())).then_some(BROKEN_DELAY)
    }
}

fn response_delay(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if retryable { retry_after(headers).map(Duration::from_secs) } else { None }
}

/// `Retry-After` in seconds; the form with a date is not understood, as upstream.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use component_base::serving;

    use super::*;

    fn response(status: u16, retry_after: &str) -> Result<http::Response<Body>, TransportError> {
        let mut response = http::Response::new(serving::empty());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        if !retry_after.is_empty() {
            response.headers_mut().insert(header::RETRY_AFTER, retry_after.parse().unwrap());
        }
        Ok(response)
    }

    #[test]
    fn only_what_is_safe_or_asked_for_is_tried_again() {
        let again = |seconds| Attempt::Again(Duration::from_secs(seconds));
        let broken = || Err(TransportError::Broken("reset".into()));
        let cases = [
            ("429 with a delay", Method::POST, response(429, "3"), again(3)),
            ("503 with a delay", Method::PUT, response(503, "0"), again(0)),
            ("429 without a delay", Method::GET, response(429, ""), Attempt::Finished),
            ("a date", Method::GET, response(503, "Wed, 21 Oct 2026 07:28:00 GMT"), Attempt::Finished),
            ("404", Method::GET, response(404, "1"), Attempt::Finished),
            ("a broken read", Method::GET, broken(), again(1)),
            ("a broken write", Method::POST, broken(), Attempt::Finished),
            ("an unsent write", Method::POST, Err(TransportError::NotSent), again(1)),
        ];
        for (name, method, outcome, expected) in cases {
            assert_eq!(Retries::new(&method, false).decide(&outcome), expected, "{name}");
        }
    }

    #[test]
    fn there_is_an_end() {
        let mut retries = Retries::new(&Method::GET, false);
        let tries = (0..20).filter(|_| retries.decide(&response(429, "1")) != Attempt::Finished).count();
        assert_eq!(tries, MAX_RETRIES);
    }
}
