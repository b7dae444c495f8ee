//! What the server asks the registry by itself.

use kinds::rules::RuleContext;
use registry::RequestCx;

/// A request of the server itself, for reads that nobody asked for.
pub(crate) fn server_request(now: RuleContext, namespace: &str) -> RequestCx {
    let (user, groups) = (authn::API_SERVER_USER.to_owned(), vec![authn::MASTERS.to_owned()]);
    let rules = RuleContext { user, groups, ..now };
    RequestCx { rules, namespace: namespace.to_owned(), dry_run: false }
}
