//! The levels and schemas that every cluster has: those that must be there as they are, and those that are suggested.

use api_machinery::meta::ObjectMeta;
use api_types::flowcontrol_v1::constants::{
    self as names, AUTO_UPDATE_ANNOTATION_KEY, flow_distinguisher_method_type, limit_response_type,
    priority_level_enablement, subject_kind,
};
use api_types::flowcontrol_v1::{
    ExemptPriorityLevelConfiguration, FlowDistinguisherMethod, FlowSchema, FlowSchemaSpec, GroupSubject, LimitResponse,
    LimitedPriorityLevelConfiguration, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration,
    PriorityLevelConfigurationReference, PriorityLevelConfigurationSpec, QueuingConfiguration, ResourcePolicyRule,
    ServiceAccountSubject, Subject, UserSubject,
};

const BY_USER: Option<&str> = Some(flow_distinguisher_method_type::BY_USER);
const BY_NAMESPACE: Option<&str> = Some(flow_distinguisher_method_type::BY_NAMESPACE);

/// A level that is limited.
struct LevelFact {
    name: &'static str,
    shares: i32,
    lendable_percent: i32,
    /// Number, size of hands; nothing where requests do not wait.
    queues: Option<(i32, i32)>,
}

#[derive(Clone, Copy)]
enum Who {
    User(&'static str),
    Group(&'static str),
    /// All accounts of a namespace.
    Accounts(&'static str),
}

enum What {
    Everything,
    Paths(&'static [&'static str]),
    Resources(&'static [ResourceFact]),
}

/// A resource rule for all namespaces.
struct ResourceFact {
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    cluster_scope: bool,
}

struct SchemaFact {
    name: &'static str,
    level: &'static str,
    precedence: i32,
    by: Option<&'static str>,
    who: &'static [Who],
    what: What,
}

const EVERYBODY: &[Who] = &[Who::Group("system:unauthenticated"), Who::Group("system:authenticated")];
const ALL: &[&str] = &["*"];
/// How many requests may wait in a queue.
const QUEUE_LENGTH: i32 = 50;

const CATCH_ALL_LEVEL: LevelFact = LevelFact { name: names::CATCH_ALL, shares: 5, lendable_percent: 0, queues: None };

const SUGGESTED_LEVELS: [LevelFact; 6] = [
    LevelFact { name: "system", shares: 30, lendable_percent: 33, queues: Some((64, 6)) },
    LevelFact { name: "node-high", shares: 40, lendable_percent: 25, queues: Some((64, 6)) },
    LevelFact { name: "leader-election", shares: 10, lendable_percent: 0, queues: Some((16, 4)) },
    LevelFact { name: "workload-high", shares: 40, lendable_percent: 50, queues: Some((128, 6)) },
    LevelFact { name: "workload-low", shares: 100, lendable_percent: 90, queues: Some((128, 6)) },
    LevelFact { name: "global-default", shares: 20, lendable_percent: 50, queues: Some((128, 6)) },
];

const MANDATORY_SCHEMAS: [SchemaFact; 2] = [
    SchemaFact {
        name: names::EXEMPT,
        level: names::EXEMPT,
        precedence: 1,
        by: None,
        who: &[Who::Group("system:masters")],
        what: What::Everything,
    },
    SchemaFact {
        name: names::CATCH_ALL,
        level: names::CATCH_ALL,
        precedence: 10_000,
        by: BY_USER,
        who: EVERYBODY,
        what: What::Everything,
    },
];

const SUGGESTED_SCHEMAS: [SchemaFact; 9] = [
    SchemaFact {
        name: "system-nodes",
        level: "system",
        precedence: 500,
        by: BY_USER,
        who: &[Who::Group("system:nodes")],
        what: What::Everything,
    },
    SchemaFact {
        name: "system-node-high",
        level: "node-high",
        precedence: 400,
        by: BY_USER,
        who: &[Who::Group("system:nodes")],
        what: What::Resources(&[
            ResourceFact { verbs: ALL, group: "", resources: &["nodes", "nodes/status"], cluster_scope: true },
            ResourceFact { verbs: ALL, group: "coordination.k8s.io", resources: &["leases"], cluster_scope: false },
        ]),
    },
    SchemaFact {
        name: "probes",
        level: names::EXEMPT,
        precedence: 2,
        by: None,
        who: EVERYBODY,
        what: What::Paths(&["/healthz", "/readyz", "/livez"]),
    },
    SchemaFact {
        name: "system-leader-election",
        level: "leader-election",
        precedence: 100,
        by: BY_USER,
        who: &[
            Who::User("system:kube-controller-manager"),
            Who::User("system:kube-scheduler"),
            Who::Accounts("kube-system"),
        ],
        what: What::Resources(&[ResourceFact {
            verbs: &["get", "create", "update"],
            group: "coordination.k8s.io",
            resources: &["leases"],
            cluster_scope: false,
        }]),
    },
    SchemaFact {
        name: "kube-controller-manager",
        level: "workload-high",
        precedence: 800,
        by: BY_NAMESPACE,
        who: &[Who::User("system:kube-controller-manager")],
        what: What::Everything,
    },
    SchemaFact {
        name: "kube-scheduler",
        level: "workload-high",
        precedence: 800,
        by: BY_NAMESPACE,
        who: &[Who::User("system:kube-scheduler")],
        what: What::Everything,
    },
    SchemaFact {
        name: "kube-system-service-accounts",
        level: "workload-high",
        precedence: 900,
        by: BY_NAMESPACE,
        who: &[Who::Accounts("kube-system")],
        what: What::Everything,
    },
    SchemaFact {
        name: "service-accounts",
        level: "workload-low",
        precedence: 9000,
        by: BY_USER,
        who: &[Who::Group("system:serviceaccounts")],
        what: What::Everything,
    },
    SchemaFact {
        name: "global-default",
        level: "global-default",
        precedence: 9900,
        by: BY_USER,
        who: EVERYBODY,
        what: What::Everything,
    },
];

/// The levels that must be there.
#[must_use]
pub fn mandatory_levels() -> Vec<PriorityLevelConfiguration> {
    let exempt = ExemptPriorityLevelConfiguration { nominal_concurrency_shares: Some(0), lendable_percent: Some(0) };
    let spec = PriorityLevelConfigurationSpec {
        type_: priority_level_enablement::EXEMPT.to_owned(),
        limited: None,
        exempt: Some(exempt),
    };
    let metadata = metadata(names::EXEMPT);
    vec![CATCH_ALL_LEVEL.object(), PriorityLevelConfiguration { metadata, spec, ..Default::default() }]
}

/// The levels that are suggested.
#[must_use]
pub fn suggested_levels() -> Vec<PriorityLevelConfiguration> {
    SUGGESTED_LEVELS.iter().map(LevelFact::object).collect()
}

/// The schemas that must be there.
#[must_use]
pub fn mandatory_schemas() -> Vec<FlowSchema> {
    MANDATORY_SCHEMAS.iter().map(SchemaFact::object).collect()
}

/// The schemas that are suggested.
#[must_use]
pub fn suggested_schemas() -> Vec<FlowSchema> {
    SUGGESTED_SCHEMAS.iter().map(SchemaFact::object).collect()
}

/// Whether a level must be there.
#[must_use]
pub fn is_mandatory_level(name: &str) -> bool {
    [names::EXEMPT, names::CATCH_ALL].contains(&name)
}

/// Whether a schema must be there.
#[must_use]
pub fn is_mandatory_schema(name: &str) -> bool {
    MANDATORY_SCHEMAS.iter().any(|own| own.name == name)
}

fn metadata(name: &str) -> ObjectMeta {
    let annotations = [(AUTO_UPDATE_ANNOTATION_KEY.to_owned(), "true".to_owned())].into();
    ObjectMeta { name: name.to_owned(), annotations, ..ObjectMeta::default() }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

impl LevelFact {
    fn object(&self) -> PriorityLevelConfiguration {
        let queuing = self.queues.map(|(queues, hand_size)| QueuingConfiguration {
            queues,
            hand_size,
            queue_length_limit: QUEUE_LENGTH,
        });
        let response = if queuing.is_some() { limit_response_type::QUEUE } else { limit_response_type::REJECT };
        let limited = LimitedPriorityLevelConfiguration {
            nominal_concurrency_shares: Some(self.shares),
            limit_response: LimitResponse { type_: response.to_owned(), queuing },
            lendable_percent: Some(self.lendable_percent),
            borrowing_limit_percent: None,
        };
        let spec = PriorityLevelConfigurationSpec {
            type_: priority_level_enablement::LIMITED.to_owned(),
            limited: Some(limited),
            exempt: None,
        };
        PriorityLevelConfiguration { metadata: metadata(self.name), spec, ..Default::default() }
    }
}

impl SchemaFact {
    fn object(&self) -> FlowSchema {
        let by = |type_: &str| FlowDistinguisherMethod { type_: type_.to_owned() };
        let rule = PolicyRulesWithSubjects {
            subjects: self.who.iter().map(|who| who.subject()).collect(),
            resource_rules: self.what.resource_rules(),
            non_resource_rules: self.what.non_resource_rules(),
        };
        let spec = FlowSchemaSpec {
            priority_level_configuration: PriorityLevelConfigurationReference { name: self.level.to_owned() },
            matching_precedence: self.precedence,
            distinguisher_method: self.by.map(by),
            rules: vec![rule],
        };
        FlowSchema { metadata: metadata(self.name), spec, ..FlowSchema::default() }
    }
}

impl Who {
    fn subject(self) -> Subject {
        let of = |kind: &str| Subject { kind: kind.to_owned(), ..Subject::default() };
        match self {
            Self::User(name) => Subject { user: Some(UserSubject { name: name.to_owned() }), ..of(subject_kind::USER) },
            Self::Group(name) => {
                Subject { group: Some(GroupSubject { name: name.to_owned() }), ..of(subject_kind::GROUP) }
            }
            Self::Accounts(namespace) => {
                let account = ServiceAccountSubject { namespace: namespace.to_owned(), name: "*".to_owned() };
                Subject { service_account: Some(account), ..of(subject_kind::SERVICE_ACCOUNT) }
            }
        }
    }
}

impl What {
    fn resource_rules(&self) -> Vec<ResourcePolicyRule> {
        const EVERYTHING: &[ResourceFact] =
            &[ResourceFact { verbs: ALL, group: "*", resources: ALL, cluster_scope: true }];
        let facts = match self {
            Self::Everything => EVERYTHING,
            Self::Resources(facts) => facts,
            Self::Paths(_) => &[],
        };
        let rule = |fact: &ResourceFact| ResourcePolicyRule {
            verbs: texts(fact.verbs),
            api_groups: texts(&[fact.group]),
            resources: texts(fact.resources),
            cluster_scope: fact.cluster_scope,
            namespaces: texts(ALL),
        };
        facts.iter().map(rule).collect()
    }

    fn non_resource_rules(&self) -> Vec<NonResourcePolicyRule> {
        let rule = |verbs, urls| vec![NonResourcePolicyRule { verbs: texts(verbs), non_resource_urls: texts(urls) }];
        match self {
            Self::Everything => rule(ALL, ALL),
            Self::Resources(_) => Vec::new(),
            Self::Paths(paths) => rule(&["get"], paths),
        }
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::json;
    use serde_json::{Value, json as value};

    use super::*;

    /// A fact written as the whole object would be, after the codec has read it.
    fn read<T: api_machinery::object::Object + Default>(fact: &Value) -> T {
        let text = value!({
            "metadata": {"name": fact["name"], "annotations": fact["annotations"]}, "spec": fact["spec"],
        });
        let mut object = T::default();
        json::decode(text.to_string().as_bytes(), &mut object).expect("a fact");
        object
    }

    #[test]
    fn objects_are_upstreams() {
        let facts = test_facts::facts("rbac-bootstrap.json");
        let of = |key: &str| facts[key].as_array().expect("a list").clone();
        for (key, own) in
            [("mandatoryPriorityLevels", mandatory_levels()), ("suggestedPriorityLevels", suggested_levels())]
        {
            let expected: Vec<PriorityLevelConfiguration> = of(key).iter().map(read).collect();
            assert_eq!(own, expected, "{key}");
        }
        for (key, own) in [("mandatoryFlowSchemas", mandatory_schemas()), ("suggestedFlowSchemas", suggested_schemas())]
        {
            let expected: Vec<FlowSchema> = of(key).iter().map(read).collect();
            assert_eq!(own, expected, "{key}");
        }
    }
}
