//! Bootstrap tokens, `{id}.{secret}`: six and sixteen characters of `[a-z0-9]`. The ID is public, the secret is not.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base::Rng;

const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_CHARACTERS: usize = 6;
const SECRET_CHARACTERS: usize = 16;

/// Whether two secrets are equal, in time that does not depend on where they differ.
#[must_use]
pub fn constant_time_equal(left: &[u8], right: &[u8]) -> bool {
    verify_slices_are_equal(left, right).is_ok()
}

/// A well-formed bootstrap token. `Debug` hides the secret; see [`Self::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    id: String,
    secret: String,
}

impl BootstrapToken {
    /// A random token.
    #[must_use]
    pub fn generate(rng: &Rng) -> Self {
        Self { id: random_text(rng, ID_CHARACTERS), secret: random_text(rng, SECRET_CHARACTERS) }
    }

    /// Parses `{id}.{secret}`; `None` when the form is not exactly that.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        let (id, secret) = token.split_once('.')?;
        let fits = |text: &str, length| text.len() == length && text.bytes().all(|b| ALPHABET.contains(&b));
        (fits(id, ID_CHARACTERS) && fits(secret, SECRET_CHARACTERS))
            .then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The public part.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret part.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Name of the Secret that stores the token.
    #[must_use]
    pub fn secret_name(&self) -> String {
        format!("bootstrap-token-{}", self.id)
    }

    /// Whether `secret` is this token's, in constant time.
    #[must_use]
    pub fn secret_matches(&self, secret: &[u8]) -> bool {
        constant_time_equal(self.secret.as_bytes(), secret)
    }

    /// The whole token in clear.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BootstrapToken({}.<redacted>)", self.id)
    }
}

fn random_text(rng: &Rng, length: usize) -> String {
    let symbols = u64::try_from(ALPHABET.len()).unwrap_or(36);
    let pick = |_| usize::try_from(rng.below(symbols)).ok().and_then(|i| ALPHABET.get(i)).copied().unwrap_or(b'a');
    (0..length).map(pick).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_parses() {
        let token = BootstrapToken::generate(&Rng::seeded(1));
        assert_eq!(BootstrapToken::parse(&token.expose()), Some(token.clone()));
        assert!(token.secret_matches(token.secret().as_bytes()) && !token.secret_matches(b"x"));
        assert!(!format!("{token:?}").contains(token.secret()));
        assert_eq!(BootstrapToken::parse("abcdef.0123456789abcdef").unwrap().secret_name(), "bootstrap-token-abcdef");
        for bad in ["", ".", "abcdef.0123456789ABCDEF", "abcde.0123456789abcdef", "abcdef.0123456789abcdef0", "a.b.c"] {
            assert_eq!(BootstrapToken::parse(bad), None, "{bad}");
        }
    }
}
