//! The arguments of plugins: which type belongs to which plugin, defaults and rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::json;
use api_machinery::labels::{Operator, Requirement};
use api_machinery::leaf::RawJson;
use api_machinery::names;
use api_machinery::reflect::Reflect;
use api_machinery::time::GoDuration;
use api_machinery::value::Value;
use api_types::core_v1::NodeSelectorTerm;
use api_types::scheduler_config_v1::{
    API_VERSION, DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PodTopologySpreadArgs, ResourceSpec, ScoringStrategy,
    UtilizationShapePoint, VolumeBindingArgs,
};
use component_base::Gates;

use crate::plugins::{CAPACITY_SCORING, FILTER_TIMEOUT};

/// The arguments of a plugin.
#[derive(Debug, Clone)]
pub enum PluginArgs {
    /// The plugin takes none.
    None,
    /// Of `DefaultPreemption`.
    DefaultPreemption(DefaultPreemptionArgs),
    /// Of `DynamicResources`.
    DynamicResources(DynamicResourcesArgs),
    /// Of `InterPodAffinity`.
    InterPodAffinity(InterPodAffinityArgs),
    /// Of `NodeAffinity`.
    NodeAffinity(NodeAffinityArgs),
    /// Of `NodeResourcesBalancedAllocation`.
    BalancedAllocation(NodeResourcesBalancedAllocationArgs),
    /// Of `NodeResourcesFit`.
    NodeResourcesFit(NodeResourcesFitArgs),
    /// Of `PodTopologySpread`.
    PodTopologySpread(PodTopologySpreadArgs),
    /// Of `VolumeBinding`.
    VolumeBinding(VolumeBindingArgs),
}

/// Why the arguments of a plugin cannot be read, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// They are another plugin's, or nobody's.
    #[error("args for plugin {plugin} were not of type {plugin}Args, got {api_version}, Kind={kind}")]
    OtherKind {
        /// The plugin.
        plugin: String,
        /// The version that they state.
        api_version: String,
        /// The kind that they state.
        kind: String,
    },
    /// They are not well formed.
    #[error("decoding args for plugin {plugin}: {source}")]
    Decode {
        /// The plugin.
        plugin: String,
        /// Why.
        source: json::DecodeError,
    },
    /// They have unknown or repeated fields.
    #[error("decoding args for plugin {plugin}: strict decoding error: {}", problems.join(", "))]
    Strict {
        /// The plugin.
        plugin: String,
        /// Each of them.
        problems: Vec<String>,
    },
}

impl PluginArgs {
    /// Empty arguments of the type that belongs to a plugin.
    #[must_use]
    pub fn empty(plugin: &str) -> Self {
        match plugin {
            "DefaultPreemption" => Self::DefaultPreemption(DefaultPreemptionArgs::default()),
            "DynamicResources" => Self::DynamicResources(DynamicResourcesArgs::default()),
            "InterPodAffinity" => Self::InterPodAffinity(InterPodAffinityArgs::default()),
            "NodeAffinity" => Self::NodeAffinity(NodeAffinityArgs::default()),
            "NodeResourcesBalancedAllocation" => {
                Self::BalancedAllocation(NodeResourcesBalancedAllocationArgs::default())
            }
            "NodeResourcesFit" => Self::NodeResourcesFit(NodeResourcesFitArgs::default()),
            "PodTopologySpread" => Self::PodTopologySpread(PodTopologySpreadArgs::default()),
            "VolumeBinding" => Self::VolumeBinding(VolumeBindingArgs::default()),
            _ => Self::None,
        }
    }

    fn reflect_mut(&mut self) -> Option<&mut dyn Reflect> {
        Some(match self {
            Self::None => return None,
            Self::DefaultPreemption(args) => args,
            Self::DynamicResources(args) => args,
            Self::InterPodAffinity(args) => args,
            Self::NodeAffinity(args) => args,
            Self::BalancedAllocation(args) => args,
            Self::NodeResourcesFit(args) => args,
            Self::PodTopologySpread(args) => args,
            Self::VolumeBinding(args) => args,
        })
    }

    /// Reads the arguments of a plugin, defaults filled in. Those of plugins that take none, or that nobody knows, are
    /// not looked at.
    ///
    /// # Errors
    /// When they are of another kind or not well formed.
    pub fn decode(plugin: &str, raw: &RawJson) -> Result<Self, ArgsError> {
        let mut args = Self::empty(plugin);
        if let Some(target) = args.reflect_mut()
            && !raw.is_empty()
        {
            let wanted = format!("{plugin}Args");
            let mut value = raw.value();
            let (api_version, kind) = take_type(&mut value);
            if (!kind.is_empty() && kind != wanted) || !matches!(api_version.as_str(), "" | API_VERSION) {
                return Err(ArgsError::OtherKind { plugin: plugin.to_owned(), api_version, kind });
            }
            let decoded = json::decode(value.to_string().as_bytes(), target)
                .map_err(|source| ArgsError::Decode { plugin: plugin.to_owned(), source })?;
            if !decoded.problems.is_empty() {
                return Err(ArgsError::Strict { plugin: plugin.to_owned(), problems: decoded.problems });
            }
        }
        args.fill();
        Ok(args)
    }

    /// The arguments as they stand in a file.
    #[must_use]
    pub fn encode(mut self, plugin: &str) -> RawJson {
        let text = self.reflect_mut().map(|args| json::encode_typed(&format!("{plugin}Args"), API_VERSION, args));
        RawJson::from_text(text.unwrap_or_default())
    }

    fn fill(&mut self) {
        match self {
            Self::None => {}
            Self::DefaultPreemption(args) => {
                args.min_candidate_nodes_percentage.get_or_insert(10);
                args.min_candidate_nodes_absolute.get_or_insert(100);
            }
            Self::DynamicResources(args) => {
                args.filter_timeout.get_or_insert(GoDuration::from_secs(FILTER_SECONDS));
                args.binding_timeout.get_or_insert(GoDuration::from_secs(BINDING_SECONDS));
            }
            Self::InterPodAffinity(args) => {
                args.hard_pod_affinity_weight.get_or_insert(1);
            }
            Self::NodeAffinity(_) => {}
            Self::BalancedAllocation(args) => fill_resources(&mut args.resources),
            Self::NodeResourcesFit(args) => {
                let strategy = args.scoring_strategy.get_or_insert_with(|| ScoringStrategy {
                    type_: "LeastAllocated".into(),
                    ..ScoringStrategy::default()
                });
                fill_resources(&mut strategy.resources);
            }
            Self::PodTopologySpread(args) => {
                if args.defaulting_type.is_empty() {
                    args.defaulting_type = "System".into();
                }
            }
            Self::VolumeBinding(args) => {
                args.bind_timeout_seconds.get_or_insert(600);
            }
        }
    }

    /// Checks the arguments, by the features that are on; `path` is where they stand.
    pub fn check(&self, gates: &Gates, path: &Path, errors: &mut ErrorList) {
        match self {
            Self::None => {}
            Self::NodeAffinity(args) => check_affinity(args, &path.child("addedAffinity"), errors),
            Self::DefaultPreemption(args) => check_preemption(args, path, errors),
            Self::DynamicResources(args) => check_devices(args, gates, path, errors),
            Self::InterPodAffinity(args) => {
                let weight = args.hard_pod_affinity_weight.unwrap_or(1);
                if !(0..=100).contains(&weight) {
                    let path = path.child("hardPodAffinityWeight");
                    errors.push(path.invalid(i64::from(weight), "not in valid range [0, 100]"));
                }
            }
            Self::BalancedAllocation(args) => check_balanced(args, path, errors),
            Self::NodeResourcesFit(args) => check_fit(args, path, errors),
            Self::PodTopologySpread(args) => check_spread(args, path, errors),
            Self::VolumeBinding(args) => check_volumes(args, gates, path, errors),
        }
    }
}

/// Operators of requirements of nodes.
const OPERATORS: [(&str, Operator); 6] = [
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
    ("Gt", Operator::GreaterThan),
    ("Lt", Operator::LessThan),
];

/// What cannot be read would match no node, and hold up every pod.
fn check_affinity(args: &NodeAffinityArgs, path: &Path, errors: &mut ErrorList) {
    let Some(added) = &args.added_affinity else { return };
    if let Some(required) = &added.required_during_scheduling_ignored_during_execution {
        let list = path.child("requiredDuringSchedulingIgnoredDuringExecution").child("nodeSelectorTerms");
        for (place, term) in required.node_selector_terms.iter().enumerate() {
            check_term(term, &list.index(place), errors);
        }
    }
    let list = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (place, term) in added.preferred_during_scheduling_ignored_during_execution.iter().enumerate() {
        check_term(&term.preference, &list.index(place), errors);
    }
}

fn check_term(term: &NodeSelectorTerm, path: &Path, errors: &mut ErrorList) {
    for (place, wanted) in term.match_expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(place);
        let Some((_, operator)) = OPERATORS.iter().find(|(name, _)| *name == wanted.operator) else {
            errors
                .push(path.child("operator").not_supported(wanted.operator.as_str(), &OPERATORS.map(|(name, _)| name)));
            continue;
        };
        if let Err(error) = Requirement::new(wanted.key.clone(), *operator, wanted.values.clone()) {
            errors.push(path.invalid(wanted.key.as_str(), error.to_string()));
        }
    }
    for (place, wanted) in term.match_fields.iter().enumerate() {
        let path = path.child("matchFields").index(place);
        if wanted.key != "metadata.name" {
            errors.push(path.child("key").not_supported(wanted.key.as_str(), &["metadata.name"]));
        }
        if !["In", "NotIn"].contains(&wanted.operator.as_str()) {
            errors.push(path.child("operator").not_supported(wanted.operator.as_str(), &["In", "NotIn"]));
        }
        if wanted.values.len() != 1 {
            errors.push(path.child("values").required("must have one element"));
        }
    }
}

/// The longest look at one node for devices, and the longest wait for them, where nothing else is said.
const FILTER_SECONDS: i64 = 10;
const BINDING_SECONDS: i64 = 600;

/// What is filled in is not held against anybody.
fn check_devices(args: &DynamicResourcesArgs, gates: &Gates, path: &Path, errors: &mut ErrorList) {
    let filter = args.filter_timeout.unwrap_or_default();
    let field = path.child("filterTimeout");
    if filter.nanos() < 0 {
        errors.push(field.invalid(filter.to_string(), "must be zero or positive"));
    } else if !gates.enabled(FILTER_TIMEOUT) && filter != GoDuration::from_secs(FILTER_SECONDS) {
        errors.push(field.forbidden("DRASchedulingFilterTimeout feature gate is disabled"));
    }
    let binding = args.binding_timeout.unwrap_or_default();
    let waits = gates.enabled(dra::BINDING_CONDITIONS) && gates.enabled(dra::DEVICE_STATUS);
    let field = path.child("bindingTimeout");
    if binding.nanos() < GoDuration::from_secs(1).nanos() {
        errors.push(field.invalid(binding.to_string(), "must be at least 1 second"));
    } else if !waits && binding != GoDuration::from_secs(BINDING_SECONDS) {
        let detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled";
        errors.push(field.forbidden(detail));
    }
}

fn check_volumes(args: &VolumeBindingArgs, gates: &Gates, path: &Path, errors: &mut ErrorList) {
    let seconds = args.bind_timeout_seconds.unwrap_or(0);
    if seconds < 0 {
        let path = path.child("bindTimeoutSeconds");
        errors.push(path.invalid(seconds, "invalid BindTimeoutSeconds, should not be a negative value"));
    }
    if args.shape.is_empty() {
        return;
    }
    let path = path.child("shape");
    if gates.enabled(CAPACITY_SCORING) {
        check_shape(&args.shape, &path, errors);
    } else {
        let detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
        errors.push(path.forbidden(detail));
    }
}

fn fill_resources(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        resources.extend(["cpu", "memory"].map(|name| ResourceSpec { name: name.into(), weight: 1 }));
    }
    for resource in resources.iter_mut().filter(|resource| resource.weight == 0) {
        resource.weight = 1;
    }
}

fn check_preemption(args: &DefaultPreemptionArgs, path: &Path, errors: &mut ErrorList) {
    let percentage = args.min_candidate_nodes_percentage.unwrap_or(0);
    let absolute = args.min_candidate_nodes_absolute.unwrap_or(0);
    let (percentage_path, absolute_path) =
        (path.child("minCandidateNodesPercentage"), path.child("minCandidateNodesAbsolute"));
    if !(0..=100).contains(&percentage) {
        errors.push(percentage_path.invalid(i64::from(percentage), "not in valid range [0, 100]"));
    }
    if absolute < 0 {
        errors.push(absolute_path.invalid(i64::from(absolute), "not in valid range [0, inf)"));
    }
    if percentage == 0 && absolute == 0 {
        let detail = "cannot be zero at the same time as minCandidateNodesAbsolute";
        errors.push(percentage_path.invalid(0_i64, detail));
        let detail = "cannot be zero at the same time as minCandidateNodesPercentage";
        errors.push(absolute_path.invalid(0_i64, detail));
    }
}

fn check_balanced(args: &NodeResourcesBalancedAllocationArgs, path: &Path, errors: &mut ErrorList) {
    let list = path.child("resources");
    for (place, resource) in args.resources.iter().enumerate() {
        if resource.weight != 1 {
            errors.push(list.index(place).child("weight").invalid(resource.weight, "must be 1"));
        }
        if args.resources.iter().take(place).any(|other| other.name == resource.name) {
            errors.push(list.index(place).child("name").duplicate(resource.name.as_str()));
        }
    }
}

fn check_fit(args: &NodeResourcesFitArgs, path: &Path, errors: &mut ErrorList) {
    let list = path.child("ignoredResources");
    for (place, name) in args.ignored_resources.iter().enumerate() {
        for detail in names::qualified_name(name) {
            errors.push(list.index(place).invalid(name.as_str(), detail));
        }
    }
    let list = path.child("ignoredResourceGroups");
    for (place, group) in args.ignored_resource_groups.iter().enumerate() {
        if group.contains('/') {
            errors.push(list.index(place).invalid(group.as_str(), "resource group name can't contain '/'"));
        }
        for detail in names::qualified_name(group) {
            errors.push(list.index(place).invalid(group.as_str(), detail));
        }
    }
    let path = path.child("scoringStrategy");
    let Some(strategy) = &args.scoring_strategy else {
        errors.push(path.required("ScoringStrategy field is required"));
        return;
    };
    check_strategy(strategy, &path, errors);
}

fn check_strategy(strategy: &ScoringStrategy, path: &Path, errors: &mut ErrorList) {
    const TYPES: &[&str] = &["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
    if !TYPES.contains(&strategy.type_.as_str()) {
        errors.push(path.child("type").not_supported(strategy.type_.as_str(), TYPES));
    }
    for (place, resource) in strategy.resources.iter().enumerate() {
        if !(1..=100).contains(&resource.weight) {
            let detail = format!("resource weight of {} not in valid range (0, 100]", resource.name);
            errors.push(path.child("resources").index(place).child("weight").invalid(resource.weight, detail));
        }
    }
    let wants_shape = strategy.type_ == "RequestedToCapacityRatio";
    match &strategy.requested_to_capacity_ratio {
        None if wants_shape => {
            let detail = "must be specified when type is RequestedToCapacityRatio";
            errors.push(path.child("requestedToCapacityRatio").required(detail));
        }
        Some(_) if !wants_shape => {
            let detail = "must be nil when type is not RequestedToCapacityRatio";
            errors.push(path.child("requestedToCapacityRatio").forbidden(detail));
        }
        Some(ratio) => check_shape(&ratio.shape, &path.child("shape"), errors),
        None => {}
    }
}

fn check_shape(shape: &[UtilizationShapePoint], path: &Path, errors: &mut ErrorList) {
    if shape.is_empty() {
        errors.push(path.required("at least one point must be specified"));
    }
    for (place, point) in shape.iter().enumerate() {
        let path = path.index(place);
        let not_rising = place.checked_sub(1).and_then(|before| shape.get(before));
        if not_rising.is_some_and(|before| before.utilization >= point.utilization) {
            let detail = "values must be sorted in increasing order";
            errors.push(path.child("utilization").invalid(i64::from(point.utilization), detail));
        }
        if !(0..=100).contains(&point.utilization) {
            let detail = "not in valid range [0, 100]";
            errors.push(path.child("utilization").invalid(i64::from(point.utilization), detail));
        }
        if !(0..=10).contains(&point.score) {
            errors.push(path.child("score").invalid(i64::from(point.score), "not in valid range [0, 10]"));
        }
    }
}

fn check_spread(args: &PodTopologySpreadArgs, path: &Path, errors: &mut ErrorList) {
    const TYPES: &[&str] = &["System", "List"];
    if !TYPES.contains(&args.defaulting_type.as_str()) {
        errors.push(path.child("defaultingType").not_supported(args.defaulting_type.as_str(), TYPES));
    }
    if args.defaulting_type == "System" && !args.default_constraints.is_empty() {
        let detail = "when .defaultConstraints are not empty";
        errors.push(path.child("defaultingType").invalid("System", detail));
    }
    let list = path.child("defaultConstraints");
    for (place, constraint) in args.default_constraints.iter().enumerate() {
        let path = list.index(place);
        if constraint.max_skew <= 0 {
            let skew = i64::from(constraint.max_skew);
            errors.push(path.child("maxSkew").invalid(skew, "not in valid range (0, inf)"));
        }
        if constraint.topology_key.is_empty() {
            errors.push(path.child("topologyKey").required("can not be empty"));
        }
        const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
        if constraint.when_unsatisfiable.is_empty() {
            errors.push(path.child("whenUnsatisfiable").required("can not be empty"));
        } else if !ACTIONS.contains(&constraint.when_unsatisfiable.as_str()) {
            errors.push(path.child("whenUnsatisfiable").not_supported(constraint.when_unsatisfiable.as_str(), ACTIONS));
        }
        if constraint.label_selector.is_some() {
            let detail = "constraint must not define a selector, as they deduced for each pod";
            errors.push(path.child("labelSelector").forbidden(detail));
        }
        let same = |other: &api_types::core_v1::TopologySpreadConstraint| {
            other.topology_key == constraint.topology_key && other.when_unsatisfiable == constraint.when_unsatisfiable
        };
        if args.default_constraints.iter().take(place).any(same) {
            let value = format!("{{{}, {}}}", constraint.topology_key, constraint.when_unsatisfiable);
            errors.push(path.duplicate(value.as_str()));
        }
    }
}

/// Takes version and kind out of an object: file kinds are plain structs to the codec.
pub(crate) fn take_type(value: &mut Value) -> (String, String) {
    let mut take = |field: &str| {
        let text = value.as_object_mut().and_then(|fields| fields.remove(field));
        text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    };
    (take("apiVersion"), take("kind"))
}
