//! `cpuManagerPolicy` and its options.

use std::collections::BTreeMap;

/// How far an option has come; which ones may be used is a matter of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

/// Which options may be used beside the stable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedOptions {
    /// Gate `CPUManagerPolicyAlphaOptions`.
    pub alpha: bool,
    /// Gate `CPUManagerPolicyBetaOptions`.
    pub beta: bool,
}

const FULL_CORES: &str = "full-pcpus-only";
const OVER_NODES: &str = "distribute-cpus-across-numa";
const BY_SOCKET: &str = "align-by-socket";
const OVER_CORES: &str = "distribute-cpus-across-cores";
const STRICT: &str = "strict-cpu-reservation";
const BY_CACHE: &str = "prefer-align-cpus-by-uncorecache";

/// Options that exclude each other.
const EXCLUSIVE: [[&str; 2]; 4] =
    [[FULL_CORES, OVER_CORES], [OVER_NODES, OVER_CORES], [BY_CACHE, OVER_CORES], [BY_CACHE, OVER_NODES]];

/// The options of the static policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuOptions {
    /// `full-pcpus-only`: whole cores or nothing.
    pub full_cores: bool,
    /// `distribute-cpus-across-numa`.
    pub over_nodes: bool,
    /// `align-by-socket`: nodes of one socket are as good as one node.
    pub by_socket: bool,
    /// `distribute-cpus-across-cores`.
    pub over_cores: bool,
    /// `strict-cpu-reservation`: what is reserved is for no pod at all.
    pub strict: bool,
    /// `prefer-align-cpus-by-uncorecache`.
    pub by_cache: bool,
}

/// `cpuManagerPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPolicy {
    None,
    Static(CpuOptions),
}

/// Why the CPU manager cannot be as it is asked to be, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuOptionError {
    #[error("unknown policy: {0:?}")]
    Policy(String),
    #[error("unknown CPU Manager Policy option: {0:?}")]
    Unknown(String),
    #[error("CPU Manager Policy Alpha-level Options not enabled, but option {0:?} provided")]
    Alpha(String),
    #[error("CPU Manager Policy Beta-level Options not enabled, but option {0:?} provided")]
    Beta(String),
    #[error("bad value for option {option:?}: {why}")]
    Value { option: String, why: String },
    #[error("static policy options {0} and {1} can not be used at the same time")]
    Exclusive(&'static str, &'static str),
    #[error("none policy: received unsupported options=map[{0}]")]
    NoPolicy(String),
}

impl CpuPolicy {
    /// Reads the fields of the configuration; an empty policy is none.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(
        policy: &str,
        options: &BTreeMap<String, String>,
        allowed: AllowedOptions,
    ) -> Result<Self, CpuOptionError> {
        match policy {
            "" | "none" if options.is_empty() => Ok(Self::None),
            "" | "none" => {
                let pairs: Vec<String> = options.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                Err(CpuOptionError::NoPolicy(pairs.join(" ")))
            }
            "static" => CpuOptions::parse(options, allowed).map(Self::Static),
            other => Err(CpuOptionError::Policy(other.to_owned())),
        }
    }

    /// Its name, as the state file has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Static(_) => "static",
        }
    }
}

impl CpuOptions {
    fn parse(options: &BTreeMap<String, String>, allowed: AllowedOptions) -> Result<Self, CpuOptionError> {
        let mut read = Self::default();
        for (name, value) in options {
            let (stage, slot) = read.slot(name).ok_or_else(|| CpuOptionError::Unknown(name.clone()))?;
            match stage {
                Stage::Alpha if !allowed.alpha => return Err(CpuOptionError::Alpha(name.clone())),
                Stage::Beta if !allowed.beta => return Err(CpuOptionError::Beta(name.clone())),
                _ => {}
            }
            *slot = component_base::flags::parse_bool(value)
                .map_err(|error| CpuOptionError::Value { option: name.clone(), why: error.to_string() })?;
        }
        for [one, other] in EXCLUSIVE {
            if [one, other].iter().all(|name| read.slot(name).is_some_and(|(_, on)| *on)) {
                return Err(CpuOptionError::Exclusive(one, other));
            }
        }
        Ok(read)
    }

    /// An option by its name.
    fn slot(&mut self, name: &str) -> Option<(Stage, &mut bool)> {
        Some(match name {
            FULL_CORES => (Stage::Stable, &mut self.full_cores),
            STRICT => (Stage::Stable, &mut self.strict),
            BY_CACHE => (Stage::Stable, &mut self.by_cache),
            OVER_NODES => (Stage::Beta, &mut self.over_nodes),
            BY_SOCKET => (Stage::Alpha, &mut self.by_socket),
            OVER_CORES => (Stage::Alpha, &mut self.over_cores),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let parse = |policy: &str, options: &[(&str, &str)], alpha: bool, beta: bool| {
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            CpuPolicy::parse(policy, &options, AllowedOptions { alpha, beta }).map_err(|error| error.to_string())
        };
        assert_eq!(parse("", &[], false, true), Ok(CpuPolicy::None));
        let options = [(FULL_CORES, "true"), (STRICT, "1"), (OVER_NODES, "T"), (BY_CACHE, "false")];
        let expected = CpuOptions { full_cores: true, strict: true, over_nodes: true, ..CpuOptions::default() };
        assert_eq!(parse("static", &options, false, true), Ok(CpuPolicy::Static(expected)));
        let on = |one, other| [(one, "true"), (other, "true")];
        type Pairs<'a> = &'a [(&'a str, &'a str)];
        let cases: [(&str, Pairs<'_>, &str); 9] = [
            ("dynamic", &[], "unknown policy: \"dynamic\""),
            ("none", &[(STRICT, "true")], "none policy: received unsupported options=map[strict-cpu-reservation:true]"),
            ("static", &[("fast", "true")], "unknown CPU Manager Policy option: \"fast\""),
            (
                "static",
                &[(STRICT, "si")],
                "bad value for option \"strict-cpu-reservation\": strconv.ParseBool: parsing \"si\": invalid syntax",
            ),
            (
                "static",
                &on(OVER_CORES, FULL_CORES),
                "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time",
            ),
            (
                "static",
                &on(OVER_CORES, OVER_NODES),
                "static policy options distribute-cpus-across-numa and distribute-cpus-across-cores can not be used at \
                 the same time",
            ),
            (
                "static",
                &on(OVER_CORES, BY_CACHE),
                "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-cores can not be used \
                 at the same time",
            ),
            (
                "static",
                &on(OVER_NODES, BY_CACHE),
                "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not be used \
                 at the same time",
            ),
            ("static", &[(OVER_NODES, "true"), (OVER_CORES, "false"), (BY_SOCKET, "x")], "bad value"),
        ];
        for (policy, options, error) in cases {
            let found = parse(policy, options, true, true).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
        let alpha = parse("static", &[(BY_SOCKET, "true")], false, true);
        let text = "CPU Manager Policy Alpha-level Options not enabled, but option \"align-by-socket\" provided";
        assert_eq!(alpha, Err(text.to_owned()));
        let beta = parse("static", &[(OVER_NODES, "true")], false, false);
        let text =
            "CPU Manager Policy Beta-level Options not enabled, but option \"distribute-cpus-across-numa\" provided";
        assert_eq!(beta, Err(text.to_owned()));
    }
}
