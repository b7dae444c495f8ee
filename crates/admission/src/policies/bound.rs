//! Policies with the bindings that make them count, compiled. The set is made anew when a policy or a binding is another
//! one than before; what did not change is taken over.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission_cel::{Composition, Facts, MatchConditions, Origin, Scene, Scope};
use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::admissionregistration_v1::{MatchCondition, MatchResources, ParamKind, ParamRef, VERSIONS, Variable};
use cel::Value;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::failure::FailurePolicy;
use super::is_own;
use crate::expressions::{Answer, Held, holds};
use crate::lookup::same;
use crate::manifests::of_type;
use crate::matching::{Criteria, MatchPolicy, Rule};
use crate::recorder::{ConditionKind, ConditionRun};
use crate::{Attributes, Context, Pass};

/// What is the same in policies of both kinds.
pub(crate) struct PolicyParts<'a> {
    pub(crate) failure_policy: Option<&'a String>,
    pub(crate) param_kind: Option<&'a ParamKind>,
    pub(crate) constraints: Option<&'a MatchResources>,
    pub(crate) conditions: &'a [MatchCondition],
    pub(crate) variables: &'a [Variable],
}

/// What is the same in bindings of both kinds.
pub(crate) struct BindingParts<'a> {
    pub(crate) policy: &'a str,
    pub(crate) param_ref: Option<&'a ParamRef>,
    pub(crate) resources: Option<&'a MatchResources>,
}

/// A kind of policies, which is called as its plugin is.
pub(crate) trait PolicyKind: Kind + Object {
    /// What binds them.
    type Binding: Kind + Object;
    /// Their expressions, compiled.
    type Compiled: Send + Sync;
    /// Whether expressions may make objects.
    const PATCHES: bool;

    fn parts(&self) -> PolicyParts<'_>;
    fn binding(binding: &Self::Binding) -> BindingParts<'_>;
    fn compile(&self, composition: &Composition) -> Self::Compiled;
}

/// A policy, compiled.
pub(crate) struct Policy<P: PolicyKind> {
    pub(crate) object: Arc<P>,
    pub(crate) failure: FailurePolicy,
    /// What is wrong with the requests that it is about, where something is.
    pub(crate) criteria: Result<Criteria, String>,
    pub(crate) param_kind: Option<GroupVersionKind>,
    pub(crate) composition: Composition,
    pub(crate) conditions: MatchConditions,
    pub(crate) compiled: P::Compiled,
    pub(crate) bindings: Vec<Binding<P>>,
}

/// A binding, as it is matched.
pub(crate) struct Binding<P: PolicyKind> {
    pub(crate) object: Arc<P::Binding>,
    /// Nothing for all that the policy is about.
    pub(crate) criteria: Option<Result<Criteria, String>>,
}

/// What counts at a time.
pub(crate) struct Set<P: PolicyKind> {
    pub(crate) policies: Vec<Arc<Policy<P>>>,
    /// For each policy, under which number it shares the answer of its conditions with those that have the same ones.
    pub(crate) shared: Vec<Option<usize>>,
    /// What it was made of. As it is held, an object that stands where another stood is another one.
    seen: (Vec<Arc<P>>, Vec<Arc<P::Binding>>),
}

impl<P: PolicyKind> Default for Set<P> {
    fn default() -> Self {
        Self { policies: Vec::new(), shared: Vec::new(), seen: (Vec::new(), Vec::new()) }
    }
}

/// The sets that count now: what files state and what the API has know nothing of each other.
pub(crate) struct Sets<P: PolicyKind> {
    files: Mutex<Arc<Set<P>>>,
    api: Mutex<OfApi<P>>,
}

/// Objects of one kind.
type Objects = Arc<[Arc<dyn Object>]>;

/// The set of what the API has.
struct OfApi<P: PolicyKind> {
    /// The policies and bindings that it was made of: nothing has changed for as long as these lists are handed out.
    lists: [Objects; 2],
    set: Arc<Set<P>>,
}

impl<P: PolicyKind> Default for Sets<P> {
    fn default() -> Self {
        let api = OfApi { lists: [Arc::from([]), Arc::from([])], set: Arc::default() };
        Self { files: Mutex::default(), api: Mutex::new(api) }
    }
}

/// Where the objects of a kind are, in the best version that is served.
fn place<T: Kind>(cx: &Context) -> Option<[&'static str; 3]> {
    let places = VERSIONS.map(|version| [T::TYPE.group, version, T::TYPE.resource]);
    places.into_iter().find(|place| cx.lookup.is_served(*place))
}

/// All objects of a kind, once the cache is filled; none of one that is not served.
async fn all<T: Kind + Object>(cx: &Context) -> Result<Objects, ApiError> {
    match place::<T>(cx) {
        Some(place) => cx.lookup.all_shared(place).await,
        None => Ok(Arc::from([])),
    }
}

impl<P: PolicyKind> Sets<P> {
    /// Whether any policy may count for a request. Without a binding none does.
    pub(crate) fn is_needed(&self, cx: &Context, attributes: &Attributes) -> bool {
        !cx.manifests.of_plugin(P::TYPE.kind).is_empty() || (!is_own(attributes) && has_bindings::<P>(cx))
    }

    /// What counts for a request now, once caches are filled: what files state comes first.
    ///
    /// # Errors
    /// When they cannot be.
    pub(crate) async fn current(&self, cx: &Context, attributes: &Attributes) -> Result<[Arc<Set<P>>; 2], ApiError> {
        let stated = cx.manifests.of_plugin(P::TYPE.kind);
        let of_files = bring_up(cx, &mut self.files.lock(), of_type(&stated), of_type(&stated));
        if is_own(attributes) {
            return Ok([of_files, Arc::default()]);
        }
        let bindings = all::<P::Binding>(cx).await?;
        let policies = if bindings.is_empty() { Arc::from([]) } else { all::<P>(cx).await? };
        Ok([of_files, self.api.lock().brought_up(cx, [policies, bindings])])
    }
}

fn has_bindings<P: PolicyKind>(cx: &Context) -> bool {
    place::<P::Binding>(cx).is_some_and(|place| cx.lookup.has_any(place))
}

impl<P: PolicyKind> OfApi<P> {
    /// The set of these policies and bindings. It is locked meanwhile, so that one compiles for all who wait for it.
    fn brought_up(&mut self, cx: &Context, lists: [Objects; 2]) -> Arc<Set<P>> {
        let is_same = lists.iter().zip(&self.lists).all(|(new, own)| Arc::ptr_eq(new, own));
        if !is_same {
            let [policies, bindings] = &lists;
            bring_up(cx, &mut self.set, of_type(policies), of_type(bindings));
            self.lists = lists;
        }
        Arc::clone(&self.set)
    }
}

/// The set of these policies and bindings, which replaces the current one where they are others.
fn bring_up<P: PolicyKind>(
    cx: &Context,
    current: &mut Arc<Set<P>>,
    policies: Vec<Arc<P>>,
    bindings: Vec<Arc<P::Binding>>,
) -> Arc<Set<P>> {
    if !same(&current.seen.0, &policies) || !same(&current.seen.1, &bindings) {
        *current = Arc::new(current.next(cx, policies, bindings));
    }
    Arc::clone(current)
}

impl<P: PolicyKind> Set<P> {
    fn next(&self, cx: &Context, policies: Vec<Arc<P>>, bindings: Vec<Arc<P::Binding>>) -> Self {
        let mut by_policy: BTreeMap<&str, Vec<Arc<P::Binding>>> = BTreeMap::new();
        for binding in &bindings {
            by_policy.entry(P::binding(binding).policy).or_default().push(Arc::clone(binding));
        }
        let compiled = policies.iter().filter_map(|object| {
            let bindings = by_policy.get(object.meta().name.as_str())?;
            let former = self.policies.iter().find(|own| Arc::ptr_eq(&own.object, object));
            let unchanged = former.filter(|own| {
                own.bindings.len() == bindings.len()
                    && own.bindings.iter().zip(bindings).all(|(own, new)| Arc::ptr_eq(&own.object, new))
            });
            Some(unchanged.map_or_else(|| Arc::new(Policy::compiled(cx, object, bindings)), Arc::clone))
        });
        let compiled: Vec<_> = compiled.collect();
        Self { shared: numbered(&compiled), policies: compiled, seen: (policies, bindings) }
    }
}

/// Numbers the different conditions of policies, but for those that are not the same for all.
fn numbered<P: PolicyKind>(policies: &[Arc<Policy<P>>]) -> Vec<Option<usize>> {
    let mut numbers = BTreeMap::new();
    let conditions = policies.iter().map(|policy| policy.conditions.of_all());
    conditions
        .map(|own| {
            let next = numbers.len();
            own.map(|own| *numbers.entry(own).or_insert(next))
        })
        .collect()
}

impl<P: PolicyKind> Policy<P> {
    /// A policy with its bindings, of which it is told how long its expressions took to compile.
    fn compiled(cx: &Context, object: &Arc<P>, bindings: &[Arc<P::Binding>]) -> Self {
        let begun = cx.clock.monotonic();
        let policy = Self::new(object, bindings);
        cx.recorder.expressions_compiled(cx.clock.monotonic() - begun);
        policy
    }

    fn new(object: &Arc<P>, bindings: &[Arc<P::Binding>]) -> Self {
        let parts = object.parts();
        let scope = Scope { params: parts.param_kind.is_some(), authorizer: true, patches: P::PATCHES };
        let mut composition = Composition::new(scope, Origin::Stored);
        for variable in parts.variables {
            // One that does not compile says so to whoever uses it.
            composition.add(&variable.name, &variable.expression).ok();
        }
        let named = parts.conditions.iter().map(|own| (own.name.as_str(), own.expression.as_str()));
        let conditions = MatchConditions::new(composition.environment(), named);
        let binding = |object: &Arc<P::Binding>| {
            let criteria = P::binding(object).resources.map(|own| criteria(own, !own.resource_rules.is_empty()));
            Binding { object: Arc::clone(object), criteria }
        };
        Self {
            failure: FailurePolicy::named(parts.failure_policy.map(String::as_str)),
            criteria: parts.constraints.map_or_else(|| Ok(nothing()), |own| criteria(own, true)),
            param_kind: parts.param_kind.map(kind_of),
            compiled: object.compile(&composition),
            bindings: bindings.iter().map(binding).collect(),
            object: Arc::clone(object),
            composition,
            conditions,
        }
    }

    /// Whether its conditions hold, with the objects of `facts` and a parameter; and when that was known. Where others have
    /// the same conditions, `shared` has their answer, or takes this one.
    pub(crate) async fn holds<'s>(
        &'s self,
        cx: &Context,
        attributes: &Attributes,
        (pass, begun): (Pass, Instant),
        facts: &'s Facts<'s>,
        params: Option<&'s dyn Object>,
        shared: Option<&mut Option<Answer>>,
    ) -> (Held, Instant) {
        let (name, operation) = (self.name(), attributes.operation);
        let run = ConditionRun { name, kind: ConditionKind::Policy, pass, operation };
        let scene = || Scene::new(facts, params.map_or(Value::Null, Value::of_object), Some(&self.composition));
        holds(cx, attributes, &run, begun, &self.conditions, scene, shared).await
    }

    /// The policy's name.
    pub(crate) fn name(&self) -> &str {
        &self.object.meta().name
    }
}

fn kind_of(kind: &ParamKind) -> GroupVersionKind {
    GroupVersionKind::from_type_meta(&kind.api_version, &kind.kind).unwrap_or_default()
}

/// A policy that says nothing of what it is about is about nothing.
fn nothing() -> Criteria {
    Criteria { rules: Some(Vec::new()), ..Criteria::default() }
}

fn criteria(resources: &MatchResources, by_rules: bool) -> Result<Criteria, String> {
    let selector = |what: &str, own: Option<&_>| match own {
        Some(own) => Criteria::selector(Some(own)).map_err(|error| error.to_string()),
        None => Err(format!("a nil {what} selector was passed, please ensure selectors are initialized properly")),
    };
    let rules = |own: &[api_types::admissionregistration_v1::NamedRuleWithOperations]| {
        own.iter().map(|own| Rule::from(&own.rule).named(&own.resource_names)).collect()
    };
    Ok(Criteria {
        namespace_selector: selector("namespace", resources.namespace_selector.as_ref())?,
        object_selector: selector("object", resources.object_selector.as_ref())?,
        rules: by_rules.then(|| rules(&resources.resource_rules)),
        excluded: rules(&resources.exclude_resource_rules),
        match_policy: MatchPolicy::named(resources.match_policy.as_deref()),
    })
}
