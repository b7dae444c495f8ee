//! Credentials that say nothing of audiences are good for the API server's, and for nobody else's.

use std::sync::Arc;

use async_trait::async_trait;

use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::identity::Identity;

/// Tokens of a kind without audiences.
pub struct AudienceAgnostic {
    tokens: Arc<dyn TokenAuthenticator>,
    api_audiences: Vec<String>,
}

impl AudienceAgnostic {
    /// Gives the tokens the API server's audiences.
    #[must_use]
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, api_audiences: Vec<String>) -> Self {
        Self { tokens, api_audiences }
    }
}

#[async_trait]
impl TokenAuthenticator for AudienceAgnostic {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        if audiences.is_empty() {
            return self.tokens.authenticate_token(token, audiences).await;
        }
        let granted: Vec<String> = self.api_audiences.iter().filter(|own| audiences.contains(own)).cloned().collect();
        if granted.is_empty() {
            return Ok(None);
        }
        let found = self.tokens.authenticate_token(token, audiences).await?;
        Ok(found.map(|identity| Identity { audiences: granted, ..identity }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token_file::StaticTokens;

    #[tokio::test]
    async fn tokens_are_for_the_api_server_only() {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        let tokens = StaticTokens::parse("good,alice,u", "t.csv").unwrap();
        let tokens = AudienceAgnostic::new(Arc::new(tokens), list(&["api", "cluster"]));
        for (token, asked, expected) in [
            ("good", list(&[]), Some(list(&[]))),
            ("good", list(&["vault", "cluster"]), Some(list(&["cluster"]))),
            ("good", list(&["vault"]), None),
            ("other", list(&["api"]), None),
        ] {
            let found = tokens.authenticate_token(token, &asked).await.unwrap();
            assert_eq!(found.map(|identity| identity.audiences), expected, "{token} {asked:?}");
        }
    }
}
