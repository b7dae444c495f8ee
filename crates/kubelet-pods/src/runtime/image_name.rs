//! Names of images: whether they are well formed, their repository, and the tag that is meant when none is given.

/// A name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// Registry host and path, such as `docker.io/library/busybox` or `registry:5000/a/b`, as it was written.
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<String>,
}

/// Why a text is no name of an image, in the words of upstream's parser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {name:?}: {fault}")]
pub struct ImageNameError {
    name: String,
    fault: NameFault,
}

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NameFault {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name must be lowercase")]
    Uppercase,
    #[error("repository name must not be more than {MAX_REPOSITORY_CHARS} characters")]
    TooLong,
}

/// Longest repository name, as the distribution reference grammar has it.
const MAX_REPOSITORY_CHARS: usize = 255;
const MAX_TAG_CHARS: usize = 128;

impl ImageName {
    /// Reads a name by the distribution reference grammar.
    ///
    /// # Errors
    /// It is not well formed.
    pub fn parse(text: &str) -> Result<Self, ImageNameError> {
        Self::take_apart(text).map_err(|fault| ImageNameError { name: text.to_owned(), fault })
    }

    fn take_apart(text: &str) -> Result<Self, NameFault> {
        if text.is_empty() {
            return Err(NameFault::Format);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(NameFault::Format);
        }
        let slash = rest.rfind('/').map_or(0, |at| at + 1);
        let (repository, tag) = match rest.get(slash..).and_then(|last| last.find(':')) {
            Some(at) => (rest.get(..slash + at).unwrap_or_default(), rest.get(slash + at + 1..)),
            None => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) || !is_repository(repository) {
            let lower = repository.to_lowercase();
            let upper = repository != lower && is_repository(&lower);
            return Err(if upper { NameFault::Uppercase } else { NameFault::Format });
        }
        if repository.len() > MAX_REPOSITORY_CHARS {
            return Err(NameFault::TooLong);
        }
        Ok(Self { repository: repository.to_owned(), tag: tag.map(str::to_owned), digest: digest.map(str::to_owned) })
    }

    /// The repository with its registry: names without one are the public registry's.
    pub fn full_repository(&self) -> String {
        const PUBLIC: &str = "docker.io";
        let (registry, path) = match self.repository.split_once('/') {
            Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
            _ => (PUBLIC, self.repository.as_str()),
        };
        match registry {
            PUBLIC | "index.docker.io" if !path.contains('/') => format!("{PUBLIC}/library/{path}"),
            "index.docker.io" => format!("{PUBLIC}/{path}"),
            registry => format!("{registry}/{path}"),
        }
    }

    /// The name under which a runtime lists the image: with its registry, and by digest alone where there is one.
    pub fn listed(&self) -> String {
        let repository = self.full_repository();
        match (&self.digest, &self.tag) {
            (Some(digest), _) => format!("{repository}@{digest}"),
            (None, tag) => format!("{repository}:{}", tag.as_deref().unwrap_or("latest")),
        }
    }

    /// The full name: `:latest` where neither tag nor digest was given.
    pub fn with_default_tag(&self) -> String {
        let tag = self.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        match &self.digest {
            Some(digest) => format!("{}{tag}@{digest}", self.repository),
            None if tag.is_empty() => format!("{}:latest", self.repository),
            None => format!("{}{tag}", self.repository),
        }
    }

    /// Whether the image may change under this name without anybody saying so.
    pub fn is_latest(&self) -> bool {
        self.digest.is_none() && self.tag.as_deref().is_none_or(|tag| tag == "latest")
    }
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let algorithm_ok = algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
        && algorithm.chars().all(|c| c.is_ascii_alphanumeric() || "+._-".contains(c));
    algorithm_ok && hex.len() >= 32 && hex.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_tag(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    first && text.len() <= MAX_TAG_CHARS && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn is_repository(text: &str) -> bool {
    let mut parts = text.split('/');
    let Some(first) = parts.next() else { return false };
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        return is_component(first);
    }
    (is_host(first) || is_component(first)) && rest.iter().all(|part| is_component(part))
}

fn is_host(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(ip, port)| {
            ip.parse::<std::net::Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port.strip_prefix(':')))
        });
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let label = |label: &str| {
        label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && label.starts_with(|c: char| c.is_ascii_alphanumeric())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    name.split('.').all(label) && (port.is_none() || is_port(port))
}

fn is_port(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))
}

/// Lower-case letters and digits, parted by one dot, one or two underscores, or dashes.
fn is_component(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separator = String::new();
    let mut previous_plain = false;
    for c in text.chars() {
        if plain(c) {
            if !separator.is_empty() && !is_separator(&separator) {
                return false;
            }
            separator.clear();
            previous_plain = true;
        } else if "._-".contains(c) && previous_plain {
            separator.push(c);
        } else {
            return false;
        }
    }
    previous_plain && separator.is_empty()
}

fn is_separator(text: &str) -> bool {
    matches!(text, "." | "_" | "__") || text.chars().all(|c| c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_defaults() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, expected) in [
            ("busybox", Ok("busybox:latest".to_owned())),
            ("busybox:1.36", Ok("busybox:1.36".to_owned())),
            ("localhost:5000/a/b", Ok("localhost:5000/a/b:latest".to_owned())),
            ("registry.example.com/a__b/c-d.e:v1", Ok("registry.example.com/a__b/c-d.e:v1".to_owned())),
            (&format!("a/b@{digest}"), Ok(format!("a/b@{digest}"))),
            ("", Err(())),
            ("UPPER", Err(())),
            ("a b", Err(())),
            ("a/b:", Err(())),
            ("a@sha256:zz", Err(())),
            ("a/", Err(())),
        ] {
            let parsed = ImageName::parse(text).map(|name| name.with_default_tag()).map_err(|_| ());
            assert_eq!(parsed, expected, "{text}");
        }
        let refused = ImageName::parse("A").unwrap_err().to_string();
        assert_eq!(
            refused,
            r#"couldn't parse image name "A": invalid reference format: repository name must be lowercase"#
        );
        assert!(ImageName::parse("a").unwrap().is_latest());
        assert!(!ImageName::parse("a:1").unwrap().is_latest());
    }

    #[test]
    fn runtimes_list_full_names() {
        for (name, expected) in [
            ("app", "docker.io/library/app:latest"),
            ("team/app:1", "docker.io/team/app:1"),
            ("localhost/app:1", "localhost/app:1"),
            ("registry:5000/app:1", "registry:5000/app:1"),
            ("registry.example/a/b", "registry.example/a/b:latest"),
        ] {
            assert_eq!(ImageName::parse(name).unwrap().listed(), expected);
        }
        let digest = format!("sha256:{}", "0".repeat(64));
        let name = ImageName::parse(&format!("app:1@{digest}")).unwrap();
        assert_eq!(name.listed(), format!("docker.io/library/app@{digest}"));
    }
}
