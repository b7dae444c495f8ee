//! Profiles from a configuration: builds every plugin that is named and puts it at its points.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::field_path::ErrorList;
use api_types::scheduler_config_v1::{KubeSchedulerConfiguration, KubeSchedulerProfile, PluginSet, Plugins};
use component_base::{Feature, Gates};

use crate::framework::{
    At, BuildCx, Descriptor, MAX_SCORE, Plugin, PluginError, PluginMask, PluginMetrics, Profile, QueueSort,
    Registration, Sign, names, registrations_of,
};
use crate::metrics::SchedulerMetrics;
use crate::plugin_args::{ArgsError, PluginArgs};
use crate::plugins::FIT;
use crate::plugins::extender::{self, ExtenderError};

/// Pods that are alike share the nodes that were found for one of them.
pub(crate) const BATCHING: Feature = Feature::named("OpportunisticBatching");

/// Why a profile cannot be built, in upstream's words.
#[derive(Debug, thiserror::Error)]
#[error("initializing profiles: {0}")]
pub struct ProfileError(Problem);

/// What is wrong with profiles.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("scheduler name is needed")]
    NoName,
    #[error("duplicate profile with scheduler name {0:?}")]
    Duplicate(String),
    #[error("can't find NodeResourcesFitArgs in plugin config")]
    NoFitArgs,
    #[error(transparent)]
    Extender(#[from] ExtenderError),
    #[error(transparent)]
    Args(#[from] ArgsError),
    #[error("creating profile for scheduler name {0}: {1}")]
    Profile(String, AssemblyError),
}

impl From<Problem> for ProfileError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

/// What is wrong with one profile.
#[derive(Debug, thiserror::Error)]
enum AssemblyError {
    #[error("repeated config for plugin {0}")]
    RepeatedConfig(String),
    #[error("at most one placement generate plugin is allowed for profile with scheduler name {0:?}")]
    PlacementGenerators(String),
    #[error("initializing plugin {0:?}: {1}")]
    Plugin(&'static str, PluginError),
    #[error("initializing plugin {0:?}: {1}")]
    InvalidArgs(String, ErrorList),
    #[error(transparent)]
    Args(#[from] ArgsError),
    #[error("more than {} plugins", PluginMask::LIMIT)]
    TooMany,
    #[error("{point}Plugin {plugin:?} does not exist")]
    Unknown { point: String, plugin: String },
    #[error("plugin {plugin:?} does not extend {point}Plugin plugin")]
    NotExtending { point: String, plugin: String },
    #[error("plugin {plugin:?} already registered as \"{point}Plugin\"")]
    Twice { point: String, plugin: String },
    #[error("at least one bind plugin is needed for profile with scheduler name {0:?}")]
    NoBind(String),
    #[error("total score of Score plugins could overflow")]
    Overflow,
    #[error("only one queue sort plugin required for profile with scheduler name {name:?}, but got {count}")]
    QueueSorts { name: String, count: usize },
}

type Order = Result<Vec<usize>, AssemblyError>;

/// Builds the profiles of a checked configuration from these plugins.
///
/// # Errors
/// When a plugin is unknown, at the wrong point or cannot be built.
pub fn build_profiles(
    configuration: &KubeSchedulerConfiguration,
    plugins: &[Descriptor],
    cx: &BuildCx,
) -> Result<Vec<Arc<Profile>>, ProfileError> {
    let extenders = extender::build_all(cx, &configuration.extenders).map_err(Problem::from)?;
    let managed = configuration.extenders.iter().flat_map(|extender| &extender.managed_resources);
    let ignored: Vec<String> =
        managed.filter(|resource| resource.ignored_by_scheduler).map(|resource| resource.name.clone()).collect();
    let mut profiles: Vec<Arc<Profile>> = Vec::new();
    for profile in &configuration.profiles {
        let name = profile.scheduler_name.clone().unwrap_or_default();
        if name.is_empty() {
            return Err(Problem::NoName.into());
        }
        if profiles.iter().any(|known| known.name == name) {
            return Err(Problem::Duplicate(name).into());
        }
        let profile = &ignoring(profile, &ignored)?;
        let built = Assembly::new(profile, plugins, cx).and_then(|assembly| assembly.profile(&name, &extenders));
        profiles.push(Arc::new(built.map_err(|error| Problem::Profile(name, error))?));
    }
    Ok(profiles)
}

/// The profile with the resources that extenders take care of left out of `NodeResourcesFit`, in the place of those that it
/// leaves out itself, as upstream.
fn ignoring<'a>(
    profile: &'a KubeSchedulerProfile,
    ignored: &[String],
) -> Result<Cow<'a, KubeSchedulerProfile>, Problem> {
    if ignored.is_empty() {
        return Ok(Cow::Borrowed(profile));
    }
    let mut profile = profile.clone();
    let config = profile.plugin_config.iter_mut().find(|config| config.name == FIT);
    let config = config.ok_or(Problem::NoFitArgs)?;
    let mut args = PluginArgs::decode(FIT, &config.args)?;
    if let PluginArgs::NodeResourcesFit(args) = &mut args {
        args.ignored_resources = ignored.to_vec();
    }
    config.args = args.encode(FIT);
    Ok(Cow::Owned(profile))
}

/// The places of the plugins at a point.
fn places<T: ?Sized>(point: &[At<T>]) -> impl Iterator<Item = usize> {
    point.iter().map(|at| at.place)
}

/// The built plugins of one profile.
struct Assembly<'a> {
    config: &'a KubeSchedulerProfile,
    lists: Plugins,
    built: Vec<Plugin>,
    gates: &'a Gates,
    metrics: &'a Arc<SchedulerMetrics>,
}

/// Every list of a profile, by the name of its point.
fn lists(plugins: &Plugins) -> [(&'static str, &PluginSet); 15] {
    [
        ("PreEnqueue", &plugins.pre_enqueue),
        ("QueueSort", &plugins.queue_sort),
        ("PreFilter", &plugins.pre_filter),
        ("Filter", &plugins.filter),
        ("PostFilter", &plugins.post_filter),
        ("PreScore", &plugins.pre_score),
        ("Score", &plugins.score),
        ("Reserve", &plugins.reserve),
        ("Permit", &plugins.permit),
        ("PreBind", &plugins.pre_bind),
        ("Bind", &plugins.bind),
        ("PostBind", &plugins.post_bind),
        ("PlacementGenerate", &plugins.placement_generate),
        ("PlacementScore", &plugins.placement_score),
        ("MultiPoint", &plugins.multi_point),
    ]
}

impl<'a> Assembly<'a> {
    fn new(config: &'a KubeSchedulerProfile, plugins: &[Descriptor], cx: &'a BuildCx) -> Result<Self, AssemblyError> {
        let lists_of = config.plugins.clone().unwrap_or_default();
        let mut assembly = Self { config, lists: lists_of, built: Vec::new(), gates: &cx.gates, metrics: &cx.metrics };
        for (place, one) in config.plugin_config.iter().enumerate() {
            if config.plugin_config.iter().take(place).any(|other| other.name == one.name) {
                return Err(AssemblyError::RepeatedConfig(one.name.clone()));
            }
        }
        let mut wanted: Vec<&str> = Vec::new();
        for plugin in lists(&assembly.lists).iter().flat_map(|(_, set)| &set.enabled) {
            if !wanted.contains(&plugin.name.as_str()) {
                wanted.push(&plugin.name);
            }
        }
        let mut built = Vec::new();
        // In the order of the table, so that places do not depend on the configuration.
        for descriptor in plugins.iter().filter(|descriptor| wanted.contains(&descriptor.name)) {
            let args = assembly.args(descriptor.name)?;
            let plugin =
                (descriptor.build)(cx, &args).map_err(|error| AssemblyError::Plugin(descriptor.name, error))?;
            built.push(plugin);
        }
        if built.len() > PluginMask::LIMIT {
            return Err(AssemblyError::TooMany);
        }
        assembly.built = built;
        Ok(assembly)
    }

    fn args(&self, plugin: &str) -> Result<PluginArgs, AssemblyError> {
        let config = self.config.plugin_config.iter().find(|config| config.name == plugin);
        let raw = config.map(|config| config.args.clone()).unwrap_or_default();
        let args = PluginArgs::decode(plugin, &raw)?;
        let mut errors = ErrorList::new();
        args.check(self.gates, &api_machinery::field_path::Path::nil(), &mut errors);
        errors.into_result().map_err(|errors| AssemblyError::InvalidArgs(plugin.to_owned(), errors))?;
        Ok(args)
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        self.built.iter().position(|plugin| plugin.name == name)
    }

    /// The plugins of a point, in order: those that override multi-point ones, the multi-point rest, the others.
    fn at(&self, point: &str, set: &PluginSet, implements: impl Fn(&Plugin) -> bool) -> Order {
        let names = |plugin: &str| (point.to_owned(), plugin.to_owned());
        let place_of = |plugin: &str| {
            let ((point, name), place) = (names(plugin), self.place_of(plugin));
            place.ok_or(AssemblyError::Unknown { point, plugin: name })
        };
        let twice = |plugin: &str| {
            let (point, plugin) = names(plugin);
            AssemblyError::Twice { point, plugin }
        };
        let mut own = Vec::new();
        for plugin in &set.enabled {
            let place = place_of(&plugin.name)?;
            if !self.built.get(place).is_some_and(&implements) {
                let (point, plugin) = names(&plugin.name);
                return Err(AssemblyError::NotExtending { point, plugin });
            }
            if own.contains(&place) {
                return Err(twice(&plugin.name));
            }
            own.push(place);
        }
        let disabled = |name: &str| set.disabled.iter().any(|plugin| plugin.name == name);
        let (mut overrides, mut rest) = (Vec::new(), Vec::new());
        if !disabled("*") {
            for plugin in &self.lists.multi_point.enabled {
                let place = place_of(&plugin.name)?;
                if !self.built.get(place).is_some_and(&implements) || disabled(&plugin.name) {
                    continue;
                }
                if own.contains(&place) {
                    overrides.push(place);
                } else if rest.contains(&place) {
                    return Err(twice(&plugin.name));
                } else {
                    rest.push(place);
                }
            }
        }
        let (mut order, others): (Vec<usize>, Vec<usize>) =
            own.into_iter().partition(|place| overrides.contains(place));
        order.extend(rest);
        order.extend(others);
        Ok(order)
    }

    /// The factor of a plugin's scores: what its own list says wins over multi-point.
    fn weight(&self, own: &PluginSet, name: &str) -> i64 {
        let lists = own.enabled.iter().chain(&self.lists.multi_point.enabled);
        let weight = lists.filter(|plugin| plugin.name == name).map(|plugin| plugin.weight.unwrap_or(0)).next();
        i64::from(weight.filter(|weight| *weight != 0).unwrap_or(1))
    }

    /// The plugins at one point that implement it, in order.
    fn point<T: ?Sized>(
        &self,
        order: &[usize],
        own: impl Fn(&Plugin) -> &Option<Arc<T>>,
        weight: impl Fn(&Plugin) -> i64,
    ) -> Vec<At<T>> {
        let one = |place: &usize| {
            let plugin = self.built.get(*place)?;
            let (name, weight) = (plugin.name, weight(plugin));
            Some(At { place: *place, name, weight, plugin: own(plugin).clone()? })
        };
        order.iter().filter_map(one).collect()
    }

    fn profile(&self, name: &str, extenders: &[Plugin]) -> Result<Profile, AssemblyError> {
        /// The plugins of a list of the configuration, at each point that it stands for.
        macro_rules! points {
            ($label:literal, $list:ident => $($field:ident),+) => {{
                let order = self.at($label, &self.lists.$list, |plugin| $(plugin.$field.is_some())||+)?;
                let scores = matches!($label, "Score" | "PlacementScore");
                let weight = |plugin: &Plugin| if scores { self.weight(&self.lists.$list, plugin.name) } else { 1 };
                ($(self.point(&order, |plugin| &plugin.$field, weight)),+)
            }};
        }
        /// The same, with the extenders behind.
        macro_rules! with_extenders {
            ($point:expr, $field:ident) => {
                $point
                    .into_iter()
                    .chain(extenders.iter().filter_map(|extender| {
                        let plugin = extender.$field.clone()?;
                        Some(At { place: self.built.len(), name: extender.name, weight: 1, plugin })
                    }))
                    .collect::<Vec<_>>()
            };
        }
        let placement_generate = points!("PlacementGenerate", placement_generate => placement_generate);
        if placement_generate.len() > 1 {
            return Err(AssemblyError::PlacementGenerators(name.to_owned()));
        }
        let queue_sort = self.queue_sort(name, &points!("QueueSort", queue_sort => queue_sort))?;
        let (bind, remote_bind) = points!("Bind", bind => bind, remote_bind);
        if bind.is_empty() && remote_bind.is_empty() {
            return Err(AssemblyError::NoBind(name.to_owned()));
        }
        let (score, remote_score) = points!("Score", score => score, remote_score);
        let weights = score.iter().map(|at| at.weight).chain(remote_score.iter().map(|at| at.weight));
        let total = weights.into_iter().try_fold(0_i64, |sum, weight| sum.checked_add(weight.checked_mul(MAX_SCORE)?));
        total.ok_or(AssemblyError::Overflow)?;
        let (filter, remote_filter) = points!("Filter", filter => filter, remote_filter);
        let (post_filter, remote_preempt) = points!("PostFilter", post_filter => post_filter, remote_preempt);
        let (pre_filter, pre_score) =
            (points!("PreFilter", pre_filter => pre_filter), points!("PreScore", pre_score => pre_score));
        let decides =
            places(&pre_filter).chain(places(&filter)).chain(places(&pre_score)).chain(places(&score)).collect();
        let is_pure = extenders.is_empty() && remote_filter.is_empty() && remote_score.is_empty();
        let signs = if is_pure { self.signs(decides) } else { Vec::new() };
        let counted = [names(&pre_filter), names(&filter), names(&pre_score), names(&score)];
        Ok(Profile {
            measured: PluginMetrics::new(self.metrics, name, counted),
            name: name.to_owned(),
            percentage_of_nodes_to_score: self.config.percentage_of_nodes_to_score,
            pre_enqueue: points!("PreEnqueue", pre_enqueue => pre_enqueue),
            queue_sort,
            pre_filter,
            filter,
            post_filter,
            pre_score,
            score,
            reserve: points!("Reserve", reserve => reserve),
            permit: points!("Permit", permit => permit),
            pre_bind: points!("PreBind", pre_bind => pre_bind),
            bind,
            post_bind: points!("PostBind", post_bind => post_bind),
            placement_generate,
            placement_score: points!("PlacementScore", placement_score => placement_score),
            remote_filter: with_extenders!(remote_filter, remote_filter),
            remote_score: with_extenders!(remote_score, remote_score),
            remote_bind: with_extenders!(remote_bind, remote_bind),
            remote_preempt: with_extenders!(remote_preempt, remote_preempt),
            registrations: self.registrations(extenders),
            signs,
        })
    }

    /// What pods have in common that are the same to all these plugins; nothing where one of them never says.
    fn signs(&self, places: BTreeSet<usize>) -> Vec<Sign> {
        if !self.gates.enabled(BATCHING) {
            return Vec::new();
        }
        let signs = places.into_iter().map(|place| self.built.get(place)?.sign.clone());
        signs.collect::<Option<_>>().unwrap_or_default()
    }

    fn queue_sort(&self, name: &str, sorts: &[At<dyn QueueSort>]) -> Result<Arc<dyn QueueSort>, AssemblyError> {
        let [sort] = sorts else {
            return Err(AssemblyError::QueueSorts { name: name.to_owned(), count: sorts.len() });
        };
        Ok(Arc::clone(&sort.plugin))
    }

    /// What the plugins want to hear of that can reject pods; all extenders together count as one.
    fn registrations(&self, extenders: &[Plugin]) -> Vec<(&'static str, Registration)> {
        let can_reject = self.built.iter().filter(|plugin| plugin.can_reject());
        let all = can_reject
            .chain(extenders.first())
            .flat_map(|plugin| registrations_of(plugin).into_iter().map(|registration| (plugin.name, registration)));
        all.collect()
    }
}
