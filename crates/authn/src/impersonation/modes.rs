//! Constrained impersonation (KEP-5284): the ways in which somebody may act as somebody else, each with permissions of its
//! own, beside the one that allows whatever the other may do.

use std::collections::BTreeMap;

use api_machinery::field_path::Path;
use api_machinery::leaf::StringList;
use api_machinery::names;
use api_machinery::quote::go_quote;

use super::{AUTHENTICATION, Impersonation, ImpersonationCheck};
use crate::identity::{MASTERS, UserInfo};
use crate::service_account::split_username;

const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
/// What is left of what is known of a service account that acts as its own node: decisions about it are good for all
/// nodes.
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
/// From so many permissions on, one for all of them is asked for first.
const MANY: usize = 4;

/// A way to act as somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A service account as the node that it runs on.
    AssociatedNode,
    /// As any node.
    ArbitraryNode,
    /// As a service account.
    ServiceAccount,
    /// As any other user.
    UserInfo,
    /// As anybody, with all that it may do: the permissions that there were before the others.
    Legacy,
}

/// What is asked of the authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// One permission.
    Check(ImpersonationCheck),
    /// The first, or else all of the others.
    Many(ImpersonationCheck, Vec<ImpersonationCheck>),
    /// Refused whoever asks: about what, and why.
    Refuse(ImpersonationCheck, String),
}

impl Mode {
    /// In the order in which they are tried.
    pub const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    /// Its name in verbs; that of the last is empty.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// The verb of the permissions to be somebody else.
    #[must_use]
    pub fn verb(self) -> String {
        if self == Self::Legacy { "impersonate".to_owned() } else { format!("impersonate:{}", self.name()) }
    }

    /// The verb of the permission to do something as somebody else, where one is needed.
    #[must_use]
    pub fn verb_on(self, verb: &str) -> Option<String> {
        (self != Self::Legacy).then(|| format!("impersonate-on:{}:{verb}", self.name()))
    }

    /// What the audit log says of it.
    #[must_use]
    pub fn constraint(self) -> String {
        if self == Self::Legacy { String::new() } else { self.verb() }
    }

    /// Whether the wish can be granted in this way.
    #[must_use]
    pub fn applies(self, wish: &Impersonation, requester: &UserInfo) -> bool {
        let (node, account) = (node_name(&wish.user), split_username(&wish.user).is_some());
        match self {
            Self::AssociatedNode => {
                let own = requester.extra.get(NODE_NAME_KEY).map(|values| values.0.as_slice());
                let is_own = matches!((node, own), (Some(node), Some([own])) if own == node);
                wish.is_name_only() && is_own && split_username(&requester.username).is_some()
            }
            Self::ArbitraryNode => wish.is_name_only() && node.is_some(),
            Self::ServiceAccount => wish.is_name_only() && account,
            Self::UserInfo => node.is_none() && !account,
            Self::Legacy => true,
        }
    }

    /// Who asks the authorizer.
    #[must_use]
    pub fn asking(self, requester: &UserInfo) -> UserInfo {
        let mut asking = requester.clone();
        if self == Self::AssociatedNode {
            let keys = StringList(requester.extra.keys().cloned().collect());
            asking.extra = BTreeMap::from([(NODE_KEYS.to_owned(), keys)]);
        }
        asking
    }

    /// Whom decisions are remembered for: those about associated nodes are good for all nodes.
    #[must_use]
    pub fn remembered(self, wish: &Impersonation) -> Impersonation {
        match self {
            Self::AssociatedNode => Impersonation { user: format!("{NODE_PREFIX}*"), ..Impersonation::default() },
            _ => wish.clone(),
        }
    }

    /// The permissions that are needed to be whom the wish names.
    #[must_use]
    pub fn steps(self, wish: &Impersonation) -> Vec<Step> {
        if self == Self::Legacy {
            return wish.legacy_checks().into_iter().map(Step::Check).collect();
        }
        let mut steps = vec![Step::Check(self.of_name(wish))];
        steps.extend((!wish.uid.is_empty()).then(|| Step::Check(check("uids", &wish.uid))));
        steps.extend(of_groups(&wish.groups));
        steps.extend(of_extra(&wish.extra));
        steps
    }

    fn of_name(self, wish: &Impersonation) -> ImpersonationCheck {
        if self == Self::AssociatedNode {
            return check("nodes", "*");
        }
        if let Some(node) = node_name(&wish.user) {
            return check("nodes", node);
        }
        match split_username(&wish.user) {
            Some((namespace, name)) => {
                ImpersonationCheck { namespace: namespace.to_owned(), ..check("serviceaccounts", name) }
            }
            None => check("users", &wish.user),
        }
    }

    /// The user that the request continues as.
    #[must_use]
    pub fn target(self, wish: &Impersonation) -> UserInfo {
        match self {
            Self::AssociatedNode | Self::ArbitraryNode => {
                Impersonation { groups: vec![NODES.to_owned()], ..wish.clone() }.target()
            }
            Self::ServiceAccount | Self::UserInfo | Self::Legacy => wish.target(),
        }
    }
}

fn check(resource: &'static str, name: &str) -> ImpersonationCheck {
    ImpersonationCheck {
        group: AUTHENTICATION,
        resource,
        subresource: String::new(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| names::dns1123_subdomain(name).is_empty())
}

fn of_groups(groups: &[String]) -> Vec<Step> {
    let group = |name: &str| check("groups", name);
    if groups.iter().any(String::is_empty) {
        return vec![Step::Refuse(group(""), "impersonating the empty string group is not allowed".to_owned())];
    }
    if groups.iter().any(|own| own == MASTERS) {
        return vec![Step::Refuse(group(MASTERS), format!("impersonating the {MASTERS} group is not allowed"))];
    }
    let each: Vec<_> = groups.iter().map(|own| group(own)).collect();
    gathered(group("*"), each, groups.len() >= MANY)
}

fn of_extra(extra: &BTreeMap<String, Vec<String>>) -> Vec<Step> {
    let of = |key: &str, value: &str| ImpersonationCheck { subresource: key.to_owned(), ..check("userextras", value) };
    if let Some(problem) = extra.iter().find_map(|(key, values)| extra_problem(key, values)) {
        return vec![Step::Refuse(of("", ""), problem)];
    }
    let each: Vec<_> = extra.iter().flat_map(|(key, values)| values.iter().map(|value| of(key, value))).collect();
    let are_many = each.len() >= MANY;
    gathered(of("*", "*"), each, are_many)
}

fn gathered(all: ImpersonationCheck, each: Vec<ImpersonationCheck>, are_many: bool) -> Vec<Step> {
    if are_many { vec![Step::Many(all, each)] } else { each.into_iter().map(Step::Check).collect() }
}

fn extra_problem(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    if let Err(problems) = names::domain_prefixed_path(&Path::new("extra").child("key"), key).into_result() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {problems}"));
    }
    if key != key.to_lowercase() {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", go_quote(key)));
    }
    if values.is_empty() {
        return Some("impersonating empty values in extra is not allowed".to_owned());
    }
    let has_empty = values.iter().any(String::is_empty);
    has_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(user: &str, groups: &[&str], extra: &[(&str, &[&str])]) -> Impersonation {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        let extra = extra.iter().map(|(key, values)| ((*key).to_owned(), list(values))).collect();
        Impersonation { user: user.to_owned(), groups: list(groups), extra, ..Impersonation::default() }
    }

    fn agent(node: &[&str]) -> UserInfo {
        let nodes = StringList(node.iter().map(|&own| own.to_owned()).collect());
        let extra = BTreeMap::from([(NODE_NAME_KEY.to_owned(), nodes), ("other".to_owned(), StringList::default())]);
        UserInfo { username: "system:serviceaccount:ns:agent".to_owned(), extra, ..UserInfo::default() }
    }

    /// Who is asked about, each as `resource/subresource namespace/name`.
    fn asked(mode: Mode, wish: &Impersonation) -> Vec<String> {
        let shown = |own: &ImpersonationCheck| {
            let ImpersonationCheck { group, resource, subresource, namespace, name } = own;
            assert_eq!(*group, if mode == Mode::Legacy { "" } else { AUTHENTICATION });
            format!("{resource}/{subresource} {namespace}/{name}")
        };
        let steps = mode.steps(wish);
        steps
            .iter()
            .map(|step| match step {
                Step::Check(own) => shown(own),
                Step::Many(all, each) => format!("{} or {}", shown(all), each.len()),
                Step::Refuse(own, why) => format!("{} refused: {why}", shown(own)),
            })
            .collect()
    }

    #[test]
    fn each_way_is_for_some_users() {
        let (plain, own) = (UserInfo { username: "ann".to_owned(), ..UserInfo::default() }, agent(&["n1"]));
        use Mode::{ArbitraryNode, AssociatedNode, Legacy, ServiceAccount, UserInfo as Users};
        for (user, groups, requester, expected) in [
            ("bob", &[][..], &plain, vec![Users, Legacy]),
            ("bob", &["g"], &plain, vec![Users, Legacy]),
            ("system:serviceaccount:ns:sa", &[], &plain, vec![ServiceAccount, Legacy]),
            ("system:serviceaccount:ns:sa", &["g"], &plain, vec![Legacy]),
            ("system:serviceaccount:ns", &[], &plain, vec![Users, Legacy]),
            ("system:node:n1", &[], &plain, vec![ArbitraryNode, Legacy]),
            ("system:node:n1", &["system:nodes"], &plain, vec![Legacy]),
            ("system:node:N!", &[], &plain, vec![Users, Legacy]),
            ("system:node:n1", &[], &own, vec![AssociatedNode, ArbitraryNode, Legacy]),
            ("system:node:n2", &[], &own, vec![ArbitraryNode, Legacy]),
            ("system:node:n1", &[], &agent(&["n1", "n2"]), vec![ArbitraryNode, Legacy]),
        ] {
            let wish = wish(user, groups, &[]);
            let modes: Vec<_> = Mode::ALL.into_iter().filter(|mode| mode.applies(&wish, requester)).collect();
            assert_eq!(modes, expected, "{user} {groups:?}");
        }
        let thief = UserInfo { username: "ann".to_owned(), ..own };
        assert!(!AssociatedNode.applies(&wish("system:node:n1", &[], &[]), &thief), "no service account");
    }

    #[test]
    fn permissions_follow_from_the_wish() {
        let four = ["a", "b", "c", "d"];
        for (mode, wish, expected) in [
            (
                Mode::UserInfo,
                wish("bob", &["g"], &[("a.b/k", &["v"])]),
                vec!["users/ /bob", "groups/ /g", "userextras/a.b/k /v"],
            ),
            (
                Mode::UserInfo,
                wish("bob", &four, &[("a.b/k", &four)]),
                vec!["users/ /bob", "groups/ /* or 4", "userextras/* /* or 4"],
            ),
            (
                Mode::UserInfo,
                wish("bob", &four[..3], &[]),
                vec!["users/ /bob", "groups/ /a", "groups/ /b", "groups/ /c"],
            ),
            (
                Mode::UserInfo,
                wish("bob", &[""], &[]),
                vec!["users/ /bob", "groups/ / refused: impersonating the empty string group is not allowed"],
            ),
            (
                Mode::UserInfo,
                wish("bob", &["a", MASTERS], &[]),
                vec![
                    "users/ /bob",
                    "groups/ /system:masters refused: impersonating the system:masters group is not allowed",
                ],
            ),
            (
                Mode::UserInfo,
                wish("bob", &[], &[("k", &["v"])]),
                vec![
                    "users/ /bob",
                    "userextras/ / refused: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"k\": must be a domain-prefixed path (such as \"acme.io/foo\")",
                ],
            ),
            (
                Mode::UserInfo,
                wish("bob", &[], &[("a.b/K", &["v"])]),
                vec![
                    "users/ /bob",
                    "userextras/ / refused: impersonating a non-lowercase key in extra is not allowed: \"a.b/K\"",
                ],
            ),
            (
                Mode::UserInfo,
                wish("bob", &[], &[("a.b/k", &[""])]),
                vec![
                    "users/ /bob",
                    "userextras/ / refused: impersonating the empty string value in extra is not allowed",
                ],
            ),
            (Mode::ServiceAccount, wish("system:serviceaccount:ns:sa", &[], &[]), vec!["serviceaccounts/ ns/sa"]),
            (Mode::ArbitraryNode, wish("system:node:n1", &[], &[]), vec!["nodes/ /n1"]),
            (Mode::AssociatedNode, wish("system:node:n1", &[], &[]), vec!["nodes/ /*"]),
            (
                Mode::Legacy,
                wish("system:node:n1", &[MASTERS], &[]),
                vec!["users/ /system:node:n1", "groups/ /system:masters"],
            ),
        ] {
            assert_eq!(asked(mode, &wish), expected, "{wish:?}");
        }
    }

    #[test]
    fn verbs_name_the_way() {
        let uid = Impersonation { uid: "7".to_owned(), ..wish("bob", &["g"], &[]) };
        assert_eq!(asked(Mode::UserInfo, &uid), ["users/ /bob", "uids/ /7", "groups/ /g"]);
        assert_eq!(Mode::UserInfo.verb_on("get").as_deref(), Some("impersonate-on:user-info:get"));
        assert_eq!((Mode::Legacy.verb_on("get"), Mode::Legacy.constraint().as_str()), (None, ""));
        assert_eq!(
            (Mode::ArbitraryNode.verb(), Mode::Legacy.verb().as_str()),
            ("impersonate:arbitrary-node".to_owned(), "impersonate")
        );
    }

    #[test]
    fn nodes_are_in_their_group_and_agents_are_told_by_their_keys_only() {
        let (node, own) = (wish("system:node:n1", &[], &[]), agent(&["n1"]));
        assert_eq!(Mode::ArbitraryNode.target(&node).groups, ["system:nodes", "system:authenticated"]);
        assert_eq!(Mode::Legacy.target(&node).groups, ["system:authenticated"]);
        let asking = Mode::AssociatedNode.asking(&own);
        let extra: Vec<_> = asking.extra.iter().map(|(key, values)| (key.as_str(), values.0.join(","))).collect();
        assert_eq!(extra, [(NODE_KEYS, format!("{NODE_NAME_KEY},other"))]);
        assert_eq!(Mode::ArbitraryNode.asking(&own), own);
        assert_eq!(Mode::AssociatedNode.remembered(&node).user, "system:node:*");
    }
}
