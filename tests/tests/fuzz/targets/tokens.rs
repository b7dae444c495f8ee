//! Tokens with which a list goes on: an input is what a token has within, or after a line `raw` the token as it is.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use registry::ContinueToken;

use super::text;
use crate::engine::{Answer, Target};

pub(super) const CONTINUE_TOKENS: Target = Target {
    name: "continue-tokens",
    words: &["raw\n", "meta.k8s.io/v1", "\"rv\":", "\"start\":\"", "../", "//", "\\u0000", "-1", "\"v\":"],
    made: None,
    inputs: 1_000,
    player: || {
        Box::new(|input| {
            let token = match input.strip_prefix(b"raw\n") {
                Some(token) => text(token).to_owned(),
                None => URL_SAFE_NO_PAD.encode(input),
            };
            Answer::of(ContinueToken::decode(&token), |token| {
                assert!(!token.start.split('/').any(|part| part == ".."), "{token:?} leaves the list");
                assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
                String::new()
            })
        })
    },
};
