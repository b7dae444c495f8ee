//! What the roles of tenants must not hold. `docs/vulnerabilities.md` says which reports these are.

use super::*;

const CHANGING: [&str; 7] = ["*", "create", "update", "patch", "delete", "deletecollection", "impersonate"];

#[test]
fn tenants_do_not_write_where_services_lead() {
    let mut looked_at = 0;
    for role in cluster_roles() {
        let name = role.metadata.name.as_str();
        let of_tenants = ["admin", "edit", "view"].contains(&name) || name.starts_with("system:aggregate-to-");
        if !of_tenants {
            continue;
        }
        looked_at += 1;
        for rule in &role.rules {
            let writes = rule.verbs.iter().any(|verb| CHANGING.contains(&verb.as_str()));
            let leads = rule.resources.iter().any(|of| ["*", "endpoints", "endpointslices"].contains(&of.as_str()));
            assert!(!(writes && leads), "{name}: {rule:?}");
        }
    }
    assert!(looked_at >= 6, "the roles have other names now");
}
