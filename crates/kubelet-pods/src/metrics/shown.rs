//! Gauges whose series follow from the present state: those of what is gone go with it.

use std::collections::{BTreeMap, BTreeSet};

use component_base::metrics::Gauges;
use parking_lot::Mutex;

use super::KubeletMetrics;
use crate::eviction::LogUse;

/// The label values that were shown last, by family.
#[derive(Default)]
pub(super) struct Shown(Mutex<BTreeMap<&'static str, BTreeSet<Vec<String>>>>);

impl Shown {
    /// Shows these series of a family, and no others.
    #[expect(clippy::cast_precision_loss, reason = "metrics are floating point numbers")]
    fn replace(&self, name: &'static str, family: &Gauges, series: impl Iterator<Item = (Vec<String>, u64)>) {
        let mut shown = self.0.lock();
        let before = std::mem::take(shown.entry(name).or_default());
        let mut now = BTreeSet::new();
        for (labels, value) in series {
            family.with(&labels.iter().map(String::as_str).collect::<Vec<_>>()).set(value as f64);
            now.insert(labels);
        }
        for gone in before.difference(&now) {
            family.remove(&gone.iter().map(String::as_str).collect::<Vec<_>>());
        }
        shown.insert(name, now);
    }
}

/// How many there are of something with a name, by state.
pub type Counts = BTreeMap<(String, &'static str), u64>;

fn labelled(counts: &Counts) -> impl Iterator<Item = (Vec<String>, u64)> {
    counts.iter().map(|((name, state), count)| (vec![name.clone(), (*state).to_owned()], *count))
}

impl KubeletMetrics {
    /// Sets how many volumes there are, by plugin, and by whether they are wanted or there.
    pub fn show_volumes(&self, counts: &Counts) {
        self.shown.replace("volumes", &self.volumes, labelled(counts));
    }

    /// Sets how many certificates of pods there are, by signer and state.
    pub fn show_certificates(&self, counts: &Counts) {
        self.shown.replace("pod_certificates", &self.pod_certificates, labelled(counts));
    }

    /// Sets what logs of containers take up.
    pub fn show_logs(&self, uses: &[LogUse]) {
        let series = uses.iter().map(|own| {
            let LogUse { container, namespace, pod, uid, bytes } = own;
            ([container, namespace, pod, uid].map(Clone::clone).into(), *bytes)
        });
        self.shown.replace("log_bytes", &self.log_bytes, series);
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::{Metrics, MetricsOptions};

    use super::*;

    #[test]
    fn what_is_gone_is_shown_no_more() {
        let metrics = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&metrics, &metrics);
        let count = |name: &str, state, count| ((name.to_owned(), state), count);
        let csi = count("kubernetes.io/csi:d", "actual_state_of_world", 2);
        own.show_volumes(&[csi.clone(), count("kubernetes.io/secret", "desired_state_of_world", 1)].into());
        own.show_certificates(&[count("example.com/s", "fresh", 1)].into());
        own.show_volumes(&[csi].into());
        let log = LogUse {
            container: "main".into(),
            namespace: "ns".into(),
            pod: "web".into(),
            uid: "u".into(),
            bytes: 4096,
        };
        own.show_logs(&[log]);
        let text = metrics.text();
        for line in [
            "volume_manager_total_volumes{plugin_name=\"kubernetes.io/csi:d\",state=\"actual_state_of_world\"} 2\n",
            "kubelet_podcertificate_states{signer_name=\"example.com/s\",state=\"fresh\"} 1\n",
            "kubelet_container_log_filesystem_used_bytes{container=\"main\",namespace=\"ns\",pod=\"web\",uid=\"u\"} 4096\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("kubernetes.io/secret"));
        own.show_logs(&[]);
        assert!(!metrics.text().contains("container=\"main\""));
    }
}
