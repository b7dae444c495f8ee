//! Image names in the full form that containerd stores: `busybox` is `docker.io/library/busybox:latest`.

/// The full name: with registry, repository and tag.
#[must_use]
pub fn full_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = if last.contains(':') { "" } else { ":latest" };
    match name.split_once('/') {
        None => format!("docker.io/library/{name}{tag}"),
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => format!("{name}{tag}"),
        Some(_) => format!("docker.io/{name}{tag}"),
    }
}

/// The tag of a full name.
pub(crate) fn tag(full: &str) -> &str {
    full.rsplit_once(':').map_or("latest", |(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed() {
        let cases = [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36"),
            ("team/app", "docker.io/team/app:latest"),
            ("registry.k8s.io/pause:3.10.1", "registry.k8s.io/pause:3.10.1"),
            ("localhost/x", "localhost/x:latest"),
            ("host:5000/x", "host:5000/x:latest"),
        ];
        for (name, expected) in cases {
            assert_eq!(full_name(name), expected);
        }
        assert_eq!(tag("host:5000/x:v1"), "v1");
    }
}
