//! Asking the signer. A signer that is not there yet is waited for, within the time that a call may take.

use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grpc::{UnixSocket, code_name, wait_for_ready};
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::error::SignerError;
use crate::header;
use server_api::signer::external_jwt_signer_client::ExternalJwtSignerClient;
use server_api::signer::{FetchKeysRequest, FetchKeysResponse, MetadataRequest, SignJwtRequest};

/// How long a signature may take; requests for tokens wait for it.
const SIGN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the signer may take to say what it can do, as upstream.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);
/// How long fetching keys may take, as upstream.
const KEYS_TIMEOUT: Duration = Duration::from_secs(60);
/// Far above what all keys of a signer are long.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Sees every call.
pub trait Observer: Send + Sync + 'static {
    /// A call of this method ended with this code.
    fn called(&self, method: &'static str, code: &'static str, took: Duration);
    /// A token was signed, or was not.
    fn signed(&self, code: &'static str);
    /// Keys were fetched, or were not; `data` is when the signer has read them, in seconds since 1970.
    fn fetched(&self, code: &'static str, data: Option<f64>);
}

/// A signer behind a socket. Clones share the connection.
#[derive(Clone)]
pub struct ExternalSigner {
    client: ExternalJwtSignerClient<Channel>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) clock: SharedClock,
}

/// A signature, with the key that it is made with.
pub(crate) struct Signed {
    pub(crate) token: String,
    pub(crate) key_id: String,
}

impl ExternalSigner {
    /// The signer at a path, or at an abstract name that begins with `@`. It is connected to when it is asked.
    ///
    /// # Errors
    /// The socket is no path.
    pub fn new(socket: &str, observer: Arc<dyn Observer>, clock: SharedClock) -> Result<Self, SignerError> {
        let path = socket.strip_prefix("unix://").unwrap_or(socket);
        let wrong = || SignerError::Socket(socket.to_owned());
        let socket = match path.strip_prefix('@') {
            Some(name) => UnixSocket::Abstract(name.to_owned()),
            None if path.is_empty() => return Err(wrong()),
            None => UnixSocket::at(path),
        };
        socket.address().map_err(|_| wrong())?;
        let client = ExternalJwtSignerClient::new(socket.channel()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { client, observer, clock })
    }

    /// The longest that a token may live, in seconds.
    ///
    /// # Errors
    /// The signer does not say.
    pub async fn max_lifetime(&self) -> Result<i64, SignerError> {
        let ask = || {
            let mut client = self.client.clone();
            async move { client.metadata(MetadataRequest {}).await }
        };
        let what = "while getting metadata of the external signer";
        let answer = self.call("/v1.ExternalJWTSigner/Metadata", what, METADATA_TIMEOUT, ask).await?;
        Ok(answer.max_token_expiration_seconds)
    }

    pub(crate) async fn fetch_keys(&self) -> Result<FetchKeysResponse, SignerError> {
        let ask = || {
            let mut client = self.client.clone();
            async move { client.fetch_keys(FetchKeysRequest {}).await }
        };
        let what = "while fetching token verification keys: while getting externally supported jwt signing keys";
        self.call("/v1.ExternalJWTSigner/FetchKeys", what, KEYS_TIMEOUT, ask).await
    }

    /// A token of these claims, which are JSON.
    pub(crate) async fn sign(&self, claims: &str) -> Result<Signed, SignerError> {
        let payload = URL_SAFE_NO_PAD.encode(claims);
        let ask = || {
            let (mut client, claims) = (self.client.clone(), payload.clone());
            async move { client.sign(SignJwtRequest { claims }).await }
        };
        let answer = self.call("/v1.ExternalJWTSigner/Sign", "while signing jwt", SIGN_TIMEOUT, ask).await?;
        let key_id = header::key_id(&answer.header)?;
        if answer.signature.is_empty() {
            return Err(SignerError::NoSignature);
        }
        Ok(Signed { token: format!("{}.{payload}.{}", answer.header, answer.signature), key_id })
    }

    async fn call<T, F>(
        &self,
        method: &'static str,
        what: &'static str,
        limit: Duration,
        ask: impl Fn() -> F,
    ) -> Result<T, SignerError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let begun = self.clock.monotonic();
        let outcome = wait_for_ready(limit, ask).await;
        let code = outcome.as_ref().map_or_else(|status| code_name(status.code()), |_| "OK");
        self.observer.called(method, code, self.clock.monotonic() - begun);
        let failed = |status: Status| SignerError::Call { what, code, message: status.message().to_owned() };
        outcome.map(Response::into_inner).map_err(failed)
    }
}
