//! Asking clients of HTTP/2 for a new connection: at random, so that they spread over the servers, and where nobody
//! knows them, so that one connection cannot be used for a flood.

use base::SharedRng;
use component_base::serving::GoAway;
use http::Version;
use http::request::Parts;

/// With a chance, that of `--goaway-chance`.
pub(super) fn at_random(chance: f64, rng: &SharedRng, parts: &Parts) {
    if chance > 0.0 && rng.unit() < chance {
        after(parts);
    }
}

/// After the requests that are running on the connection.
pub(super) fn after(parts: &Parts) {
    if parts.version == Version::HTTP_2
        && let Some(go_away) = parts.extensions.get::<GoAway>()
    {
        go_away.send();
    }
}
