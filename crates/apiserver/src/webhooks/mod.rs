//! How webhooks that objects of the cluster name are reached: by a URL or as a service, with the certificates that the object
//! trusts and the credentials that a file has for the host. Connections are kept for the next question. Redirects are not
//! followed, and what is read of an answer has a bound.

mod clients;
mod credentials;
mod failure;
mod service;

pub(crate) use clients::{ADMISSION_ANSWER_BYTES, CONVERSION_ANSWER_BYTES, WebhookClients, WebhookSurroundings};
pub(crate) use credentials::WebhookCredentials;
