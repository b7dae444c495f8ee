//! What a resource request is about: the resource, the place, and the object.

use std::sync::Arc;

use api_machinery::names::path_segment_name;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use kinds::info::{ResourceInfo, SubresourceInfo};
use kinds::rules::{Endpoint, RuleContext, Rules};
use registry::{RequestCx, Resource};
use schema::TypeNode;

use crate::chain::{Authorized, Request};
use crate::custom_kinds::CustomKind;
use crate::cx::ApiCx;
use crate::negotiate::{Choice, Offer};
use crate::request::IncludeObject;
use crate::request::RequestInfo;
use crate::respond::Rendering;

/// The resource, the place and the object of a request.
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// The schema of a kind that came at run time.
    pub(crate) custom: Option<Arc<CustomKind>>,
    /// Empty for cluster scope and for all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    /// Its place among those of the resource.
    subresource: Option<usize>,
}

/// Whether the server knows the group version of a path, so that the answer about it is a `Status`.
pub(super) fn is_served(cx: &ApiCx, info: &RequestInfo) -> bool {
    let own = |group: &str, version: &str| group == info.group && version == info.version;
    let prefix_fits = (info.api_prefix == "api") == info.group.is_empty();
    prefix_fits
        && (kinds::all().any(|rules| own(rules.info().group, rules.info().version))
            || cx.registry.resource(&info.group, &info.version, &info.resource).is_some())
}

/// Whether the path is out of the scope of a kind that came at run time: nobody knows such a path.
pub(super) fn is_out_of_scope(cx: &ApiCx, info: &RequestInfo) -> bool {
    if cx.custom_kinds.get(&info.group, &info.version, &info.resource).is_none() {
        return false;
    }
    let Some(resource) = cx.registry.resource(&info.group, &info.version, &info.resource) else { return false };
    if resource.info().namespaced {
        info.namespace.is_empty() && !matches!(info.verb.as_str(), "list" | "watch")
    } else {
        !info.namespace.is_empty()
    }
}

impl Target {
    /// Finds the target of a path.
    ///
    /// # Errors
    /// 404 for paths that lead nowhere, 400 for names that are no part of a path.
    pub(crate) fn find(cx: &ApiCx, info: &RequestInfo) -> Result<Self, ApiError> {
        let resource = cx.registry.resource(&info.group, &info.version, &info.resource);
        let resource = resource.ok_or_else(ApiError::unknown_resource)?;
        let facts = resource.info();
        // A cluster-scoped object below a namespace would be authorized by that namespace's roles.
        let is_namespaces = facts.group.is_empty() && facts.resource == "namespaces";
        if !facts.namespaced && !info.namespace.is_empty() && !is_namespaces {
            return Err(ApiError::unknown_resource());
        }
        let name = info.path_name().map(str::to_owned);
        if facts.namespaced && info.namespace.is_empty() && name.is_some() && !info.watch_prefix {
            return Err(ApiError::unknown_resource());
        }
        check_segment("Namespace", &info.namespace)?;
        if let Some(name) = &name {
            if name.is_empty() {
                return Err(Self::nameless());
            }
            check_segment("Name", name)?;
        }
        let subresource = match info.subresource.as_str() {
            "" => None,
            wanted => {
                let found = facts.subresources.iter().position(|own| own.name == wanted);
                // Of a kind that came at run time it is the object that is said to be missing.
                let unknown = || match cx.custom_kinds.get(&info.group, &info.version, &info.resource) {
                    Some(_) => ApiError::not_found(resource.group_resource(), name.as_deref().unwrap_or_default()),
                    None => ApiError::unknown_resource(),
                };
                Some(found.filter(|_| info.parts.len() == 3).ok_or_else(unknown)?)
            }
        };
        Ok(Self {
            custom: cx.custom_kinds.get(&info.group, &info.version, &info.resource),
            namespace: if facts.namespaced { info.namespace.clone() } else { String::new() },
            resource,
            name,
            subresource,
        })
    }

    /// The name of the object; requests without one have been told so.
    ///
    /// # Errors
    /// 400.
    pub(crate) fn name(&self) -> Result<&str, ApiError> {
        self.name.as_deref().ok_or_else(Self::nameless)
    }

    /// The refusal of a request that leaves out the name.
    pub(crate) fn nameless() -> ApiError {
        ApiError::bad_request("name must be provided")
    }

    /// Names and facts of the resource.
    pub(crate) fn info(&self) -> &ResourceInfo<'_> {
        self.resource.info()
    }

    /// The subresource that is asked for, if one is.
    pub(crate) fn subresource(&self) -> Option<&SubresourceInfo<'_>> {
        self.subresource.and_then(|place| self.info().subresources.get(place))
    }

    /// The part of the object that a write changes.
    ///
    /// # Errors
    /// 404 for parts that no rules know: custom kinds have none but their status that is written this way.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, ApiError> {
        match self.subresource().map(|own| own.name) {
            None => Ok(Endpoint::Main),
            Some("status") => Ok(Endpoint::Status),
            Some(other) => {
                let [group, version, resource] = self.info().place();
                let parts = kinds::find(group, version, resource).map_or(&[][..], |rules| rules.info().subresources);
                let found = parts.iter().map(|part| part.name).find(|name| *name == other);
                found.map(Endpoint::Other).ok_or_else(ApiError::unknown_resource)
            }
        }
    }

    pub(crate) fn rules(&self) -> &dyn Rules {
        self.resource.rules()
    }

    pub(crate) fn is_custom(&self) -> bool {
        kinds::find(self.info().group, self.info().version, self.info().resource).is_none()
    }

    /// Whether objects can be created at the path: in a namespace, or in none because the kind has none.
    pub(crate) fn has_home(&self) -> bool {
        !self.info().namespaced || !self.namespace.is_empty()
    }

    /// # Errors
    /// 405 where the kind does not have the verb.
    pub(crate) fn check_verb(&self, verb: &str) -> Result<(), ApiError> {
        if self.info().verbs.contains(&verb) { Ok(()) } else { Err(self.without_verb(verb)) }
    }

    /// The refusal of a verb that the kind does not have; that of a built-in kind comes from a router that knows no verbs.
    pub(crate) fn without_verb(&self, verb: &str) -> ApiError {
        if self.is_custom() {
            return ApiError::method_not_supported(self.resource.group_resource(), verb);
        }
        ApiError::method_not_allowed()
    }

    pub(crate) fn api_version(&self) -> String {
        match self.info().group {
            "" => self.info().version.to_owned(),
            group => format!("{group}/{}", self.info().version),
        }
    }

    /// The type of the objects, for patches and field ownership.
    pub(crate) fn type_node(&self) -> TypeNode<'_> {
        match &self.custom {
            Some(custom) => TypeNode::of_schema(&custom.schema),
            None if self.is_custom() => TypeNode::deduced(),
            None => TypeNode::of_struct(self.rules().table()),
        }
    }

    /// Where the objects keep their replicas.
    pub(crate) fn replicas_path(&self) -> &str {
        let declared = self.custom.as_ref().map(|custom| custom.replicas_path.as_str());
        declared.filter(|path| !path.is_empty()).unwrap_or(".spec.replicas")
    }

    pub(crate) fn list_kind(&self) -> String {
        self.custom.as_ref().map_or_else(|| format!("{}List", self.info().kind), |custom| custom.list_kind.clone())
    }

    /// What the registry is told of a request.
    pub(crate) fn request_cx(&self, cx: &ApiCx, request: &Request<Authorized>, dry_run: bool) -> RequestCx {
        RequestCx { rules: rule_context(cx, request.user()), namespace: self.namespace.clone(), dry_run }
    }

    /// What answers of the resource are made with.
    ///
    /// # Errors
    /// 406 when the client wants no form that there is.
    pub(crate) fn rendering<'a>(
        &'a self,
        cx: &ApiCx,
        request: &'a Request<Authorized>,
    ) -> Result<Rendering<'a>, ApiError> {
        let choice = request.preferences().choose(Offer::resource(self.is_custom()))?;
        self.shown_as(cx, request, choice)
    }

    /// The same, for what was chosen already.
    ///
    /// # Errors
    /// 400 for unknown options of tables.
    pub(crate) fn shown_as<'a>(
        &'a self,
        cx: &ApiCx,
        request: &'a Request<Authorized>,
        choice: Choice,
    ) -> Result<Rendering<'a>, ApiError> {
        Ok(Rendering {
            preferences: request.preferences(),
            include: IncludeObject::read(request.query())?,
            choice,
            rules: self.rules(),
            now: cx.clock().wall().into(),
            list_kind: self.list_kind(),
        })
    }
}

fn check_segment(what: &str, value: &str) -> Result<(), ApiError> {
    let problems = path_segment_name(value);
    if problems.is_empty() && !value.contains('\0') {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("{what} parameter invalid: {value:?}: {}", problems.join(";"))))
}

/// What the rules of kinds may know of a request.
fn rule_context(cx: &ApiCx, user: &UserInfo) -> RuleContext {
    RuleContext {
        user: user.username.clone(),
        user_uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.iter().map(|(key, values)| (key.clone(), values.0.clone())).collect(),
        forbids_privileged: !cx.config().requests.allow_privileged,
        ..cx.registry().rule_context()
    }
}
