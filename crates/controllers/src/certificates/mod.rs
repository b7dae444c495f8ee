//! Certificate signing requests.
