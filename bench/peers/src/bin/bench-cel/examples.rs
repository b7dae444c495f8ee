//! Rules of the kind that users write.
//!
//! <https://kubernetes.io/docs/reference/using-api/cel/>

/// A rule about `self`, and an object for which it holds.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) object: &'static str,
}

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        name: "cel-bounds",
        rule: "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
        object: r#"{"minReplicas": 1, "replicas": 3, "maxReplicas": 10}"#,
    },
    Example {
        name: "cel-key",
        rule: "'Available' in self.stateCounts",
        object: r#"{"stateCounts": {"Ready": 3, "Available": 2, "Failed": 1}}"#,
    },
    Example {
        name: "cel-either",
        rule: "(size(self.list1) == 0) != (size(self.list2) == 0)",
        object: r#"{"list1": ["a", "b"], "list2": []}"#,
    },
    Example {
        name: "cel-pattern",
        rule: "self.envars.filter(e, e.name == 'MY_ENV').all(e, e.value.matches('^[a-zA-Z]*$'))",
        object: r#"{"envars": [{"name": "PATH", "value": "/bin"}, {"name": "MY_ENV", "value": "letters"}, {"name": "HOME", "value": "/"}]}"#,
    },
    Example {
        name: "cel-time",
        rule: "has(self.expired) && timestamp(self.created) + duration(self.ttl) < timestamp(self.expired)",
        object: r#"{"created": "2026-01-01T00:00:00Z", "ttl": "1h", "expired": "2026-01-01T02:00:00Z"}"#,
    },
    Example { name: "cel-prefix", rule: "self.health.startsWith('ok')", object: r#"{"health": "ok: all is well"}"# },
    Example {
        name: "cel-exists",
        rule: "self.widgets.exists(w, w.key == 'x' && w.foo < 10)",
        object: r#"{"widgets": [{"key": "a", "foo": 1}, {"key": "b", "foo": 2}, {"key": "c", "foo": 3}, {"key": "x", "foo": 4}]}"#,
    },
    Example {
        name: "cel-disjoint",
        rule: "self.set1.all(e, !(e in self.set2))",
        object: r#"{"set1": ["a", "b", "c", "d"], "set2": ["w", "x", "y", "z"]}"#,
    },
    Example {
        name: "cel-names",
        rule: "size(self.names) == size(self.details) && self.names.all(n, n in self.details)",
        object: r#"{"names": ["a", "b", "c", "d"], "details": {"a": "1", "b": "2", "c": "3", "d": "4"}}"#,
    },
    Example {
        name: "cel-primary",
        rule: "size(self.clusters.filter(c, c.name == self.primary)) == 1",
        object: r#"{"primary": "b", "clusters": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}"#,
    },
    Example {
        name: "cel-policy",
        rule: "self.spec.containers.all(c, has(c.securityContext) && c.securityContext.runAsNonRoot && \
               c.image.startsWith('registry.example/') && has(c.resources.limits) && 'memory' in c.resources.limits)",
        object: r#"{"spec": {"containers": [
            {"name": "web", "image": "registry.example/web:1", "securityContext": {"runAsNonRoot": true},
             "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "log", "image": "registry.example/log:2", "securityContext": {"runAsNonRoot": true},
             "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}}]}}"#,
    },
];
