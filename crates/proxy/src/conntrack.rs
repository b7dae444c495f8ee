//! How many connections the kernel tracks and for how long.
//!
//! The kernel keeps one limit for the whole machine, so a proxy inside a network namespace of its own may not set it.
//! Where a limit was asked for that is an error; where it is only the default, the kernel's own limit stays.

use component_base::flags::Options;
use sys::proc::Proc;

/// The most that is asked of the kernel for many processors; the configured minimum may be more.
const MOST: u64 = 1 << 20;
const MAX: &str = "net/netfilter/nf_conntrack_max";

/// Flags of this part; a file has the same settings.
const FLAGS: [&str; 7] = [
    "conntrack-max-per-core",
    "conntrack-min",
    "conntrack-tcp-timeout-established",
    "conntrack-tcp-timeout-close-wait",
    "conntrack-tcp-be-liberal",
    "conntrack-udp-timeout",
    "conntrack-udp-timeout-stream",
];

/// What the kernel is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConntrackSettings {
    /// Connections for each processor; 0 leaves the kernel's limit.
    pub max_per_core: u64,
    /// Connections at least.
    pub min: u64,
    /// Kernel parameters below `net/netfilter` with their values.
    pub parameters: Vec<(&'static str, u64)>,
    /// Whether any of it was asked for, so that failing is an error.
    pub is_wish: bool,
}

impl ConntrackSettings {
    /// What the flags say.
    #[must_use]
    pub fn from_options(options: &Options) -> Self {
        let number = |flag: &str| u64::try_from(options.int(flag)).unwrap_or(0);
        let (max_per_core, min) = (number("conntrack-max-per-core"), number("conntrack-min"));
        let seconds = |flag: &str| options.duration(flag).as_secs();
        let timeouts = [
            ("nf_conntrack_tcp_timeout_established", seconds("conntrack-tcp-timeout-established")),
            ("nf_conntrack_tcp_timeout_close_wait", seconds("conntrack-tcp-timeout-close-wait")),
            ("nf_conntrack_udp_timeout", seconds("conntrack-udp-timeout")),
            ("nf_conntrack_udp_timeout_stream", seconds("conntrack-udp-timeout-stream")),
        ];
        let mut parameters: Vec<_> = timeouts.into_iter().filter(|(_, seconds)| *seconds > 0).collect();
        if options.bool("conntrack-tcp-be-liberal") {
            parameters.push(("nf_conntrack_tcp_be_liberal", 1));
        }
        let is_wish = FLAGS.iter().any(|flag| options.is_set(flag));
        Self { max_per_core, min, parameters, is_wish }
    }

    /// The limit on a machine with so many processors. As upstream, one that so many processors would take too far does not look
    /// at the minimum.
    fn max(&self, processors: u64) -> Option<u64> {
        let scaled = self.max_per_core.saturating_mul(processors);
        (self.max_per_core > 0).then(|| if scaled > MOST { MOST } else { scaled.max(self.min) })
    }

    /// Tells the kernel what differs.
    ///
    /// # Errors
    /// The kernel refuses something that was asked for.
    pub fn apply(&self, proc: &Proc) -> std::io::Result<()> {
        let processors = u64::try_from(proc.cpus().unwrap_or(1)).unwrap_or(1);
        if let Some(max) = self.max(processors) {
            self.judge(MAX, set(proc, MAX, max).and_then(|()| grow_table(proc, max / 4)))?;
        }
        for (name, value) in &self.parameters {
            let name = format!("net/netfilter/{name}");
            self.judge(&name, set(proc, &name, *value))?;
        }
        Ok(())
    }

    fn judge(&self, name: &str, outcome: std::io::Result<()>) -> std::io::Result<()> {
        match outcome {
            Err(error) if !self.is_wish => {
                tracing::warn!(name, %error, "The kernel's setting stays as it is");
                Ok(())
            }
            outcome => outcome.map_err(|error| std::io::Error::new(error.kind(), format!("{name}: {error}"))),
        }
    }
}

fn set(proc: &Proc, name: &str, value: u64) -> std::io::Result<()> {
    let now = proc.sysctl(name)?;
    if now.trim() == value.to_string() {
        return Ok(());
    }
    tracing::info!(name, now, value, "Setting a kernel parameter");
    proc.set_sysctl(name, &value.to_string())
}

/// A table that is too small for its entries makes every packet slow.
fn grow_table(proc: &Proc, buckets: u64) -> std::io::Result<()> {
    let now = proc.module_parameter("nf_conntrack", "hashsize")?.parse().unwrap_or(u64::MAX);
    if now >= buckets {
        return Ok(());
    }
    proc.set_module_parameter("nf_conntrack", "hashsize", &buckets.to_string())
}

#[cfg(test)]
mod tests {
    use component_base::flags;

    use super::*;
    use crate::options;

    fn settings(arguments: &[&str]) -> ConntrackSettings {
        let options = flags::parse(options::FLAGS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
        ConntrackSettings::from_options(&options)
    }

    #[test]
    fn limits_grow_with_the_machine() {
        for (arguments, processors, expected) in [
            (&[][..], 2, Some(131_072)),
            (&[], 8, Some(262_144)),
            (&[], 64, Some(MOST)),
            (&["--conntrack-max-per-core=0"], 8, None),
            (&["--conntrack-min=10", "--conntrack-max-per-core=7"], 2, Some(14)),
            (&["--conntrack-min=2000000"], 8, Some(2_000_000)),
            (&["--conntrack-min=2000000"], 64, Some(MOST)),
        ] {
            assert_eq!(settings(arguments).max(processors), expected, "{arguments:?} {processors}");
        }
    }

    #[test]
    fn the_kernel_is_told_what_differs() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let read = |path: &str| std::fs::read_to_string(root.path().join(path)).unwrap();
        put("proc/stat", "cpu  1\ncpu0 1\ncpu1 1\n");
        put("proc/sys/net/netfilter/nf_conntrack_max", "65536\n");
        put("sys/module/nf_conntrack/parameters/hashsize", "16384\n");
        put("proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "432000\n");
        put("proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait", "3600\n");
        let proc = Proc::at(root.path());
        settings(&[]).apply(&proc).unwrap();
        assert_eq!(read("proc/sys/net/netfilter/nf_conntrack_max"), "131072");
        assert_eq!(read("sys/module/nf_conntrack/parameters/hashsize"), "32768");
        assert_eq!(read("proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"), "86400");
        assert_eq!(read("proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait"), "3600\n", "not written again");
    }

    #[test]
    fn only_wishes_fail() {
        let nothing = tempfile::tempdir().unwrap();
        let proc = Proc::at(nothing.path());
        settings(&[]).apply(&proc).unwrap();
        let error = settings(&["--conntrack-udp-timeout=30s"]).apply(&proc).unwrap_err();
        assert!(error.to_string().starts_with(MAX), "{error}");
    }
}
