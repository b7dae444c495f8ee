//! Operations: what can be asked of each path, in terms that both dialects share.

use api_machinery::gvk::GroupVersionKind;

use super::{Model, Resource, operation_group, short_group};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// One method of one path.
pub(super) struct Operation {
    pub(super) path: String,
    /// Lower case.
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    /// `get`, `list`, `post` and so on; empty where none is told.
    pub(super) action: &'static str,
    pub(super) gvk: Option<GroupVersionKind>,
    pub(super) query: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) answer: Answer,
    /// Codes that carry the answer.
    pub(super) codes: &'static [&'static str],
    /// Whether it is of a kind that came at run time, of which less is told.
    pub(super) custom: bool,
}

/// A query parameter: name and type.
pub(super) type Parameter = (&'static str, &'static str);

/// What a request carries.
pub(super) enum Body {
    None,
    /// A model, and whether it must be there.
    Model(String, bool),
    Patch,
}

/// What a response carries.
pub(super) enum Answer {
    Model(String),
    /// A model, also as a stream of watch events.
    Stream(String),
    /// Text, of any media type.
    Text,
    /// Text, or what tells that there is none.
    Log,
}

const WRITE: [Parameter; 3] = [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const DELETE: [Parameter; 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const SELECT: [Parameter; 9] = [
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
];
const WATCH: [Parameter; 2] = [("allowWatchBookmarks", "boolean"), ("watch", "boolean")];

/// The options of subresources that connect to something.
fn connecting(subresource: &str) -> &'static [Parameter] {
    match subresource {
        "attach" => &[
            ("container", "string"),
            ("stderr", "boolean"),
            ("stdin", "boolean"),
            ("stdout", "boolean"),
            ("tty", "boolean"),
        ],
        "exec" => &[
            ("command", "string"),
            ("container", "string"),
            ("stderr", "boolean"),
            ("stdin", "boolean"),
            ("stdout", "boolean"),
            ("tty", "boolean"),
        ],
        "log" => &[
            ("container", "string"),
            ("follow", "boolean"),
            ("insecureSkipTLSVerifyBackend", "boolean"),
            ("limitBytes", "integer"),
            ("previous", "boolean"),
            ("sinceSeconds", "integer"),
            ("stream", "string"),
            ("tailLines", "integer"),
            ("timestamps", "boolean"),
        ],
        "portforward" => &[("ports", "integer")],
        "proxy" => &[("path", "string")],
        _ => &[],
    }
}

fn joined(parts: &[&[Parameter]]) -> Vec<Parameter> {
    let mut all = parts.concat();
    all.sort_unstable();
    all
}

/// All operations of a resource.
pub(super) fn of(resource: &Resource<'_>) -> Vec<Operation> {
    let writer = Writer::new(resource);
    let mut operations = writer.on_object();
    if resource.subresource.is_empty() {
        operations.extend(writer.on_collection());
        operations.extend(writer.watches());
    }
    operations
}

struct Writer<'r, 'a> {
    resource: &'r Resource<'a>,
    prefix: String,
    group: String,
    /// `Namespaced` or nothing, and the kind: the tail of operation ids.
    noun: String,
    model: Option<String>,
}

impl<'r, 'a> Writer<'r, 'a> {
    fn new(resource: &'r Resource<'a>) -> Self {
        let scope = if resource.namespaced { "Namespaced" } else { "" };
        let subresource = super::capitalized(resource.subresource);
        Self {
            prefix: resource.prefix(),
            group: operation_group(resource.group, resource.version),
            noun: format!("{scope}{}{subresource}", resource.parent_kind),
            model: resource.model_name(),
            resource,
        }
    }

    fn collection_path(&self) -> String {
        let namespace = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{namespace}/{}", self.prefix, self.resource.name)
    }

    fn object_path(&self) -> String {
        let path = format!("{}/{{name}}", self.collection_path());
        match self.resource.subresource {
            "" => path,
            subresource => format!("{path}/{subresource}"),
        }
    }

    fn operation(&self, path: String, method: &'static str, verb: &str, action: &'static str) -> Operation {
        Operation {
            path,
            method,
            id: format!("{verb}{}{}", self.group, self.noun),
            tag: format!("{}_{}", short_group(self.resource.group), self.resource.version),
            action,
            gvk: Some(self.resource.gvk.clone()),
            query: Vec::new(),
            body: Body::None,
            answer: self.model.clone().map_or(Answer::Text, Answer::Model),
            codes: &["200"],
            custom: self.is_custom(),
        }
    }

    fn is_custom(&self) -> bool {
        matches!(self.resource.model, Some(Model::Custom { .. }))
    }

    fn on_object(&self) -> Vec<Operation> {
        let path = || self.object_path();
        let resource = self.resource;
        let mut operations = Vec::new();
        if resource.subresource == "log" {
            return vec![self.log()];
        }
        let Some(model) = self.model.clone() else { return self.connections() };
        if resource.has("get") {
            let query = if self.is_custom() { vec![("resourceVersion", "string")] } else { Vec::new() };
            operations.push(Operation { query, ..self.operation(path(), "get", "read", "get") });
        }
        if resource.has("update") {
            operations.push(Operation {
                query: joined(&[&WRITE]),
                body: Body::Model(model.clone(), true),
                codes: &["200", "201"],
                ..self.operation(path(), "put", "replace", "put")
            });
        }
        if resource.has("patch") {
            operations.push(Operation {
                query: joined(&[&WRITE, &[("force", "boolean")]]),
                body: Body::Patch,
                codes: if self.is_custom() { &["200"] } else { &["200", "201"] },
                ..self.operation(path(), "patch", "patch", "patch")
            });
        }
        if resource.has("delete") {
            operations.push(Operation {
                query: joined(&[&DELETE]),
                body: Body::Model(format!("{META}.DeleteOptions"), false),
                answer: Answer::Model(self.deleted_model(&model)),
                codes: &["200", "202"],
                ..self.operation(path(), "delete", "delete", "delete")
            });
        }
        if resource.has("create") && !resource.subresource.is_empty() {
            operations.push(self.creation(path(), model));
        }
        operations
    }

    /// Some kinds answer a deletion with the object, the others with a Status.
    fn deleted_model(&self, model: &str) -> String {
        if self.resource.returns_deleted { model.to_owned() } else { format!("{META}.Status") }
    }

    fn creation(&self, path: String, model: String) -> Operation {
        Operation {
            query: joined(&[&WRITE]),
            body: Body::Model(model, true),
            codes: &["200", "201", "202"],
            ..self.operation(path, "post", "create", "post")
        }
    }

    fn connections(&self) -> Vec<Operation> {
        let methods: [(&str, &'static str, &str); 5] = [
            ("get", "get", "Get"),
            ("create", "post", "Post"),
            ("update", "put", "Put"),
            ("patch", "patch", "Patch"),
            ("delete", "delete", "Delete"),
        ];
        let offered = methods.into_iter().filter(|(verb, ..)| self.resource.has(verb));
        let mut offered: Vec<_> = offered.map(|(_, method, name)| (method, name)).collect();
        let is_proxy = self.resource.subresource == "proxy";
        if is_proxy {
            offered.extend([("options", "Options"), ("head", "Head")]);
        }
        let paths = [(self.object_path(), ""), (format!("{}/{{path}}", self.object_path()), "WithPath")];
        let paths = paths.into_iter().take(if is_proxy { 2 } else { 1 });
        let below = paths.flat_map(|(path, suffix)| offered.iter().map(move |own| (path.clone(), suffix, *own)));
        below
            .map(|(path, suffix, (method, name))| Operation {
                id: format!("connect{}{name}{}{suffix}", self.group, self.noun),
                query: connecting(self.resource.subresource).to_vec(),
                ..self.operation(path, method, "", "connect")
            })
            .collect()
    }

    /// The log of a pod is read, though it is no object.
    fn log(&self) -> Operation {
        Operation {
            query: connecting("log").to_vec(),
            answer: Answer::Log,
            ..self.operation(self.object_path(), "get", "read", "get")
        }
    }

    fn on_collection(&self) -> Vec<Operation> {
        let resource = self.resource;
        let mut operations = Vec::new();
        let Some(model) = self.model.clone() else { return operations };
        let list = format!("{model}List");
        let path = self.collection_path();
        if resource.has("list") {
            operations.push(self.listing(path.clone(), list.clone(), None));
            if resource.namespaced {
                let everywhere = format!("{}/{}", self.prefix, resource.name);
                operations.push(self.listing(everywhere, list, Some("ForAllNamespaces")));
            }
        }
        if resource.has("create") {
            operations.push(self.creation(path.clone(), model));
        }
        if resource.has("deletecollection") {
            // The document of a custom kind tells the options of the list that is deleted only.
            let (query, body) = if self.is_custom() {
                (joined(&[&SELECT, &WATCH]), Body::None)
            } else {
                (joined(&[&SELECT, &DELETE]), Body::Model(format!("{META}.DeleteOptions"), false))
            };
            operations.push(Operation {
                id: format!("delete{}Collection{}", self.group, self.noun),
                query,
                body,
                answer: Answer::Model(format!("{META}.Status")),
                ..self.operation(path, "delete", "", "deletecollection")
            });
        }
        operations
    }

    fn listing(&self, path: String, list: String, suffix: Option<&str>) -> Operation {
        let everywhere = suffix.map(|suffix| format!("list{}{}{suffix}", self.group, self.resource.parent_kind));
        let operation = self.operation(path, "get", "list", "list");
        Operation {
            id: everywhere.unwrap_or_else(|| operation.id.clone()),
            query: joined(&[&SELECT, &WATCH]),
            answer: Answer::Stream(list),
            ..operation
        }
    }

    /// The old paths below `/watch/`, which clients still find here.
    fn watches(&self) -> Vec<Operation> {
        if !self.resource.has("watch") || self.model.is_none() || self.is_custom() {
            return Vec::new();
        }
        let kind = self.resource.parent_kind;
        let below = |path: String| path.replacen(&self.prefix, &format!("{}/watch", self.prefix), 1);
        let watch = |path: String, id: String, action: &'static str| Operation {
            id,
            query: joined(&[&SELECT, &WATCH]),
            answer: Answer::Stream(format!("{META}.WatchEvent")),
            ..self.operation(path, "get", "", action)
        };
        let list_id = format!("watch{}{}List", self.group, self.noun);
        let mut operations = vec![watch(below(self.collection_path()), list_id, "watchlist")];
        if self.resource.has("get") {
            operations.push(watch(below(self.object_path()), format!("watch{}{}", self.group, self.noun), "watch"));
        }
        if self.resource.namespaced {
            let path = format!("{}/watch/{}", self.prefix, self.resource.name);
            operations.push(watch(path, format!("watch{}{kind}ListForAllNamespaces", self.group), "watchlist"));
        }
        operations
    }
}

/// The names in braces of a path, in order.
pub(super) fn path_parameters(path: &str) -> Vec<&str> {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    parts.collect()
}

/// The operation that shows what a group version serves.
pub(super) fn discovery(path: String, id: String, tag: String, model: &str) -> Operation {
    Operation {
        path,
        method: "get",
        id,
        tag,
        action: "",
        gvk: None,
        query: Vec::new(),
        body: Body::None,
        answer: Answer::Model(format!("{META}.{model}")),
        codes: &["200"],
        custom: false,
    }
}
