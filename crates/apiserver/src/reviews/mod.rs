//! Questions put to the server as objects that are created and never stored: who am I, who is this, may they, may I.

mod access;
mod evaluate;
mod identity;
mod rules;
mod token;
mod validate;
mod virtual_write;

use std::sync::Arc;

use crate::routes::Routes;
use validate::AUTHORIZATION;

pub(crate) use evaluate::decide;
pub(crate) use virtual_write::{Passing, expect_post};

const AUTHENTICATION: &str = "authentication.k8s.io";

/// Adds the resources.
pub(crate) fn install(routes: &mut Routes) {
    routes.resource(AUTHENTICATION, "v1", "tokenreviews", Arc::new(token::TokenReviews));
    routes.resource(AUTHENTICATION, "v1", "selfsubjectreviews", Arc::new(identity::SelfSubjectReviews));
    routes.resource(AUTHORIZATION, "v1", "subjectaccessreviews", Arc::new(access::SubjectAccessReviews));
    routes.resource(AUTHORIZATION, "v1", "localsubjectaccessreviews", Arc::new(access::LocalSubjectAccessReviews));
    routes.resource(AUTHORIZATION, "v1", "selfsubjectaccessreviews", Arc::new(access::SelfSubjectAccessReviews));
    routes.resource(AUTHORIZATION, "v1", "selfsubjectrulesreviews", Arc::new(rules::SelfSubjectRulesReviews));
}
