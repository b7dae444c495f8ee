//! Static tokens from a CSV file (`--token-auth-file`), read once at start, and the API server's own loopback token.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::csv;
use crate::identity::{API_SERVER_USER, AUTHENTICATED, Identity, MASTERS, UserInfo};

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// Reading it.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Quotes that do not fit together.
    #[error("token file '{path}': {why}")]
    Syntax {
        /// The file.
        path: String,
        /// Line and problem.
        why: String,
    },
    /// A row too short.
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// The file.
        path: String,
        /// Columns of the row.
        found: usize,
    },
}

/// Tokens known in advance.
#[derive(Default)]
pub struct StaticTokens {
    identities: HashMap<String, Identity>,
}

impl StaticTokens {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TokenFileError`].
    pub fn load(path: &Path) -> Result<Self, TokenFileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses rows `token,user,uid[,"group1,group2"]`. Empty tokens are skipped and later duplicates win, both with a warning in
    /// the log.
    ///
    /// # Errors
    /// [`TokenFileError::Syntax`] or [`TokenFileError::Columns`].
    pub fn parse(text: &str, path: &str) -> Result<Self, TokenFileError> {
        let rows = csv::parse(text)
            .map_err(|error| TokenFileError::Syntax { path: path.to_owned(), why: error.to_string() })?;
        let mut out = Self::default();
        for (index, row) in rows.iter().enumerate() {
            let [token, user, uid, rest @ ..] = row.as_slice() else {
                return Err(TokenFileError::Columns { path: path.to_owned(), found: row.len() });
            };
            if token.is_empty() {
                tracing::warn!(path, record = index + 1, "empty token has been found in token file");
                continue;
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect();
            let identity =
                Identity::of(UserInfo { username: user.clone(), uid: uid.clone(), groups, ..UserInfo::default() });
            if out.identities.insert(token.clone(), identity).is_some() {
                tracing::warn!(path, record = index + 1, "duplicate token has been found in token file");
            }
        }
        Ok(out)
    }

    /// The one token by which the API server calls itself: user `system:apiserver` with `uid`, in `system:masters`.
    #[must_use]
    pub fn loopback(token: &str, uid: &str) -> Self {
        let groups = vec![AUTHENTICATED.to_owned(), MASTERS.to_owned()];
        let user =
            UserInfo { username: API_SERVER_USER.to_owned(), uid: uid.to_owned(), groups, ..UserInfo::default() };
        let identity = Identity::of(user);
        Self { identities: HashMap::from([(token.to_owned(), identity)]) }
    }
}

#[async_trait]
impl TokenAuthenticator for StaticTokens {
    async fn authenticate_token(&self, token: &str, _audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        Ok(self.identities.get(token).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_become_users() {
        let text = "abc,alice,u1,\"dev,ops\"\n\n,nobody,u2\nabc,bob,u3\nxyz,\"c\"\"d\",u4\n";
        let tokens = StaticTokens::parse(text, "t.csv").unwrap();
        let find = async |token: &str| tokens.authenticate_token(token, &[]).await.unwrap().map(|i| i.user);
        let user = find("abc").await.unwrap();
        assert_eq!((user.username.as_str(), user.uid.as_str(), user.groups.len()), ("bob", "u3", 0));
        assert_eq!(find("xyz").await.unwrap().username, "c\"d");
        assert_eq!(find("").await, None);
        let first = StaticTokens::parse("abc,alice,u1,\"dev,ops\"", "t.csv").unwrap();
        assert_eq!(first.identities["abc"].user.groups, ["dev", "ops"]);
    }

    #[test]
    fn bad_files_are_refused() {
        let case = |text: &str| StaticTokens::parse(text, "t.csv").err().unwrap().to_string();
        assert_eq!(
            case("a,b\n"),
            "token file 't.csv' must have at least 3 columns (token, user name, user uid), found 2"
        );
        assert_eq!(case("a,b,c,\"d"), "token file 't.csv': record on line 1: extraneous or missing \" in quoted-field");
        assert_eq!(case("ok,b,c\na,b\"x,c"), "token file 't.csv': record on line 2: bare \" in non-quoted-field");
    }
}
