//! Which pods count for a metric, and how: by whether they are ready, and whether there is a value of theirs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::constants::pod_phase;
use api_types::core_v1::{Container, Pod};
use component_helpers::pod_requests::is_pod_level;
use component_helpers::{conditions, pod_state};

use super::formula::FormulaError;

/// What a pod used on average over a window that ended at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) at: Time,
    pub(super) window: Duration,
    /// In thousandths.
    pub(super) milli: i64,
}

/// The samples of a metric by the names of pods.
pub(super) type Samples = BTreeMap<String, Sample>;

/// How long the processor time of young pods is not believed.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuRules {
    /// After its start a pod may need more than it will.
    pub(super) initialization: Duration,
    /// A pod that became unready within this time of its start was never ready.
    pub(super) readiness_delay: Duration,
}

/// Names of pods by how they count.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) ready: usize,
    pub(super) unready: Vec<String>,
    pub(super) missing: Vec<String>,
    /// Going or failed.
    pub(super) ignored: Vec<String>,
}

impl Groups {
    /// Sorts pods into groups; the rules of processor time apply where they are given.
    pub(super) fn of(pods: &[Arc<Pod>], samples: &Samples, cpu: Option<CpuRules>, now: Time) -> Self {
        let mut groups = Self::default();
        for pod in pods {
            let name = || pod.metadata.name.clone();
            if pod.metadata.deletion_timestamp.is_some() || pod.status.phase == pod_phase::FAILED {
                groups.ignored.push(name());
            } else if pod.status.phase == pod_phase::PENDING {
                groups.unready.push(name());
            } else {
                match samples.get(&pod.metadata.name) {
                    None => groups.missing.push(name()),
                    Some(sample) if cpu.is_some_and(|rules| rules.distrusts(pod, sample, now)) => {
                        groups.unready.push(name());
                    }
                    Some(_) => groups.ready += 1,
                }
            }
        }
        groups
    }

    /// Drops the samples that do not count.
    pub(super) fn filter(&self, samples: &mut Samples) {
        for name in self.ignored.iter().chain(&self.unready) {
            samples.remove(name);
        }
    }
}

impl CpuRules {
    fn distrusts(self, pod: &Pod, sample: &Sample, now: Time) -> bool {
        let ready = conditions::find(&pod.status.conditions, "Ready");
        let (Some(ready), Some(started)) = (ready, pod.status.start_time) else { return true };
        let is_unready = ready.status == "False";
        // One that is to start by its node's clock only does not tell how young it is, and would be distrusted until then.
        let is_young = started <= now && started + self.initialization > now;
        if is_young {
            is_unready || sample.at < ready.last_transition_time + sample.window
        } else {
            is_unready && started + self.readiness_delay > ready.last_transition_time
        }
    }
}

/// How many pods are running and ready.
pub(super) fn ready_pods(pods: &[Arc<Pod>]) -> usize {
    pods.iter().filter(|pod| pod.status.phase == pod_phase::RUNNING && pod_state::is_ready(pod)).count()
}

/// What each pod asks for of a resource, in thousandths; of one of its containers where one is named.
pub(super) fn requests(
    pods: &[Arc<Pod>],
    resource: &str,
    container: Option<&str>,
) -> Result<BTreeMap<String, i64>, FormulaError> {
    let request = |pod: &Arc<Pod>| Ok((pod.metadata.name.clone(), request(pod, resource, container)?));
    pods.iter().map(request).collect()
}

fn request(pod: &Pod, resource: &str, container: Option<&str>) -> Result<i64, FormulaError> {
    let missing = |container: &Container| FormulaError::MissingRequest {
        resource: resource.to_owned(),
        container: container.name.clone(),
        pod: pod.metadata.name.clone(),
    };
    let of_pod = pod.spec.resources.as_ref().map(|resources| &resources.requests);
    if let Some(requests) = of_pod.filter(|requests| container.is_none() && requests.keys().any(|it| is_pod_level(it)))
    {
        let amount = requests.get(resource).map(|amount| amount.milli_value());
        let none = || FormulaError::MissingPodRequest { resource: resource.to_owned(), pod: pod.metadata.name.clone() };
        return amount.ok_or_else(none);
    }
    let sidecars = pod.spec.init_containers.iter().filter(|container| pod_state::is_sidecar(container));
    let all = pod.spec.containers.iter().chain(sidecars);
    let mut sum: Option<i64> = container.is_none().then_some(0);
    for own in all.filter(|own| container.is_none_or(|name| own.name == name)) {
        let amount = own.resources.requests.get(resource).ok_or_else(|| missing(own))?;
        sum = Some(sum.unwrap_or(0).saturating_add(amount.milli_value()));
    }
    sum.ok_or_else(|| FormulaError::NoContainer {
        container: container.unwrap_or_default().to_owned(),
        pod: pod.metadata.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::ResourceRequirements;

    use super::*;
    use crate::workloads::fixtures::{at, dying, pod, ready};

    const RULES: CpuRules =
        CpuRules { initialization: Duration::from_secs(300), readiness_delay: Duration::from_secs(30) };

    fn sample(at_second: i64) -> Sample {
        Sample { at: at(at_second), window: Duration::from_secs(30), milli: 100 }
    }

    fn started(mut pod: Pod, at_second: i64) -> Pod {
        pod.status.start_time = Some(at(at_second));
        pod
    }

    fn unready(pod: Pod, since: i64) -> Pod {
        let mut pod = ready(pod, since);
        pod.status.conditions[0].status = "False".into();
        pod
    }

    #[test]
    fn pods_fall_into_groups() {
        let now = at(1000);
        let running = || pod("p", "Running", None);
        let young = |since| started(ready(running(), since), 900);
        type Row = (&'static str, Pod, Option<Sample>, Option<CpuRules>, &'static str);
        let rows: Vec<Row> = vec![
            ("going", dying(running()), Some(sample(990)), None, "ignored"),
            ("failed", pod("p", "Failed", None), Some(sample(990)), None, "ignored"),
            ("pending", pod("p", "Pending", None), Some(sample(990)), None, "unready"),
            ("no value", running(), None, Some(RULES), "missing"),
            ("ended", pod("p", "Succeeded", None), None, None, "missing"),
            ("not of processor time", running(), Some(sample(990)), None, "ready"),
            ("no condition", started(running(), 0), Some(sample(990)), Some(RULES), "unready"),
            ("no start", ready(running(), 1), Some(sample(990)), Some(RULES), "unready"),
            ("young, a whole window since ready", young(960), Some(sample(990)), Some(RULES), "ready"),
            ("young, less than a window since ready", young(961), Some(sample(990)), Some(RULES), "unready"),
            ("young and unready", started(unready(running(), 900), 900), Some(sample(990)), Some(RULES), "unready"),
            ("old and never ready", started(unready(running(), 529), 500), Some(sample(990)), Some(RULES), "unready"),
            ("old and once ready", started(unready(running(), 530), 500), Some(sample(990)), Some(RULES), "ready"),
            (
                "of a clock that is ahead",
                started(ready(running(), 9001), 9000),
                Some(sample(990)),
                Some(RULES),
                "ready",
            ),
            (
                "of a clock that is ahead, unready",
                started(unready(running(), 9001), 9000),
                Some(sample(990)),
                Some(RULES),
                "unready",
            ),
            ("old, ready just now", started(ready(running(), 999), 500), Some(sample(990)), Some(RULES), "ready"),
        ];
        for (case, pod, sample, cpu, expected) in rows {
            let samples = sample.map(|sample| ("p".to_owned(), sample)).into_iter().collect();
            let groups = Groups::of(&[Arc::new(pod)], &samples, cpu, now);
            let found = match (groups.ready, groups.unready.len(), groups.missing.len(), groups.ignored.len()) {
                (1, 0, 0, 0) => "ready",
                (0, 1, 0, 0) => "unready",
                (0, 0, 1, 0) => "missing",
                (0, 0, 0, 1) => "ignored",
                other => panic!("{case}: {other:?}"),
            };
            assert_eq!(found, expected, "{case}");
        }
    }

    fn container(name: &str, cpu: Option<&str>) -> Container {
        let mut container = Container { name: name.into(), ..Container::default() };
        container.resources.requests.extend(cpu.map(|cpu| ("cpu".to_owned(), Quantity::parse(cpu).unwrap())));
        container
    }

    #[test]
    fn requests_are_those_of_all_that_runs_on() {
        let of = |containers: &[Container], init: &[Container], level: Option<(&str, &str)>, named: Option<&str>| {
            let mut pod = pod("p", "Running", None);
            (pod.spec.containers, pod.spec.init_containers) = (containers.to_vec(), init.to_vec());
            pod.spec.resources = level.map(|(name, amount)| ResourceRequirements {
                requests: [(name.to_owned(), Quantity::parse(amount).unwrap())].into(),
                ..ResourceRequirements::default()
            });
            request(&pod, "cpu", named).map_err(|error| error.to_string())
        };
        let (a, b) = (container("a", Some("100m")), container("b", Some("1")));
        let mut sidecar = container("s", Some("50m"));
        sidecar.restart_policy = Some("Always".into());
        let without = container("w", None);
        assert_eq!(of(&[a.clone(), b.clone()], std::slice::from_ref(&sidecar), None, None), Ok(1150));
        assert_eq!(
            of(std::slice::from_ref(&a), std::slice::from_ref(&b), None, None),
            Ok(100),
            "init containers are over"
        );
        assert_eq!(of(&[a.clone(), without.clone()], &[], None, Some("a")), Ok(100));
        assert_eq!(of(std::slice::from_ref(&a), &[sidecar], None, Some("s")), Ok(50));
        assert_eq!(of(std::slice::from_ref(&a), &[], Some(("cpu", "3")), None), Ok(3000));
        assert_eq!(of(std::slice::from_ref(&a), &[], Some(("cpu", "3")), Some("a")), Ok(100));
        let refused = |text: &str| Err(text.to_owned());
        let text = "missing request for cpu in container w of Pod p";
        assert_eq!(of(&[a.clone(), without], &[], None, None), refused(text));
        assert_eq!(of(std::slice::from_ref(&a), &[], None, Some("x")), refused("container x not found in Pod p"));
        let text = "missing pod-level request for cpu in Pod p";
        assert_eq!(of(&[a], &[], Some(("memory", "1Gi")), None), refused(text));
    }
}
