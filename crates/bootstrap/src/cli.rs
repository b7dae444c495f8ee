//! The command line of `coxswain`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cluster::{ControlPlane, Data, Settings};

/// What the user wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subcommand {
    /// Bring the cluster up.
    Up,
    /// Take it down.
    Down(Data),
    /// Make its certificates.
    Certs,
    /// Issue its certificates anew.
    RenewCerts,
    /// Write its kubeconfigs.
    Kubeconfig,
    /// Write the control plane's static Pod manifests, into a directory.
    Manifests(PathBuf),
    /// Write systemd units, into a directory, and what they name.
    Units(PathBuf),
    /// Make what units need after a start of the machine.
    Prepare,
    /// Give a cluster that runs its first objects.
    Addons,
}

/// The commands and their flags.
#[must_use]
pub fn command() -> Command {
    let settings = [
        path("root", "DIR", "Where the cluster's files are kept, laid out as kubeadm does")
            .default_value("/var/lib/coxswain"),
        path("state-dir", "DIR", "Where sockets and running state are kept").default_value("/run/coxswain"),
        path("bin-dir", "DIR", "Where the binaries are (default: beside this program)"),
        path(
            "images-dir",
            "DIR",
            "Where the image archives are that every node gets (default: images beside --bin-dir)",
        ),
        Arg::new("nodes")
            .long("nodes")
            .value_name("N")
            .help("How many nodes; each further one has a network namespace and a container runtime of its own")
            .value_parser(value_parser!(u8))
            .default_value("1"),
        Arg::new("etcd-servers")
            .long("etcd-servers")
            .value_name("URLS")
            .help("etcd endpoints, separated by commas; without them the API server keeps its own store"),
        Arg::new("extra-flag")
            .long("extra-flag")
            .value_name("COMPONENT=FLAG")
            .help(
                "A further flag for a component, such as kube-controller-manager=--node-monitor-grace-period=10s or \
                 kubelet=--config-dir=DIR for fields of its configuration; may be given several times",
            )
            .action(ArgAction::Append),
        Arg::new("static-pods")
            .long("static-pods")
            .help("Run the control plane as static Pods of the first node, from images in control-plane below --images-dir")
            .action(ArgAction::SetTrue),
    ];
    let sub = |name: &'static str, about: &'static str| Command::new(name).about(about).args(settings.clone());
    let out = || path("out", "DIR", "Where to write them").required(true);
    let keep =
        Arg::new("purge").long("purge").help("Remove certificates and stored objects, too").action(ArgAction::SetTrue);
    let renew = Arg::new("renew")
        .long("renew")
        .help(
            "Issue all certificates of the control plane anew, and those in its kubeconfigs, which end after a year; \
             authorities stay",
        )
        .action(ArgAction::SetTrue);
    Command::new("coxswain")
        .about("Brings Kubernetes clusters up and down on this machine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(sub("up", "Bring the cluster up; safe to run again"))
        .subcommand(sub("down", "Take the cluster down, leaving nothing behind but its data").arg(keep))
        .subcommand(sub("certs", "Make the certificates that are missing").arg(renew))
        .subcommand(sub("kubeconfig", "Write the kubeconfigs that are missing"))
        .subcommand(sub("manifests", "Write static Pod manifests of the control plane").arg(out()))
        .subcommand(
            sub("units", "Write systemd units for a cluster of this machine alone, and the files that they name")
                .arg(out()),
        )
        .subcommand(sub("prepare", "Make what units need after each start of the machine; their first one runs it"))
        .subcommand(sub("addons", "Give a cluster that runs its roles, addons and images; safe to run again"))
}

/// Processes and units are started from elsewhere.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).value_parser(value_parser!(PathBuf))
}

/// What the arguments say; `program` is where this program is.
#[must_use]
pub fn wish(matches: &ArgMatches, program: &std::path::Path) -> Option<(Subcommand, Settings)> {
    let (name, matches) = matches.subcommand()?;
    let path = |name: &str| matches.try_get_one::<PathBuf>(name).ok().flatten().cloned();
    let mut settings = Settings::new(&path("root")?);
    settings.state = path("state-dir")?;
    let bin_dir = path("bin-dir").or_else(|| program.parent().map(PathBuf::from))?;
    settings.bin_dir = absolute(bin_dir);
    settings.images_dir = path("images-dir").map_or_else(|| settings.bin_dir.join("../images"), absolute);
    settings.nodes = matches.get_one::<u8>("nodes").copied()?;
    settings.etcd_servers = matches.get_one::<String>("etcd-servers").cloned().unwrap_or_default();
    let extra = matches.get_many::<String>("extra-flag").into_iter().flatten();
    settings.extra_flags = extra
        .map(|text| text.split_once('=').unwrap_or((text, "")))
        .map(|(component, flag)| (component.to_owned(), flag.to_owned()))
        .collect();
    if matches.get_flag("static-pods") {
        settings.control_plane = ControlPlane::StaticPods;
    }
    let wish = match name {
        "up" => Subcommand::Up,
        "down" if matches.get_flag("purge") => Subcommand::Down(Data::Remove),
        "down" => Subcommand::Down(Data::Keep),
        "certs" if matches.get_flag("renew") => Subcommand::RenewCerts,
        "certs" => Subcommand::Certs,
        "kubeconfig" => Subcommand::Kubeconfig,
        "manifests" => Subcommand::Manifests(path("out")?),
        "units" => Subcommand::Units(path("out")?),
        "prepare" => Subcommand::Prepare,
        "addons" => Subcommand::Addons,
        _ => return None,
    };
    Some((wish, settings))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parsed(arguments: &[&str]) -> (Subcommand, Settings) {
        let matches = command().try_get_matches_from(std::iter::once(&"coxswain").chain(arguments)).unwrap();
        wish(&matches, Path::new("/opt/bin/coxswain")).unwrap()
    }

    #[test]
    fn arguments_become_settings() {
        let (wish, settings) =
            parsed(&["up", "--nodes", "2", "--extra-flag", "kube-scheduler=--v=4", "--root", "/var/lib/x"]);
        assert_eq!((wish, settings.nodes), (Subcommand::Up, 2));
        assert_eq!(settings.extra_flags, [("kube-scheduler".to_owned(), "--v=4".to_owned())]);
        assert_eq!(settings.bin_dir, Path::new("/opt/bin"));
        assert_eq!(settings.control_plane, ControlPlane::Processes);
        assert_eq!(parsed(&["up", "--static-pods"]).1.control_plane, ControlPlane::StaticPods);
        assert_eq!(parsed(&["down", "--purge"]).0, Subcommand::Down(Data::Remove));
        assert_eq!(
            (parsed(&["certs"]).0, parsed(&["certs", "--renew"]).0),
            (Subcommand::Certs, Subcommand::RenewCerts)
        );
        assert_eq!(parsed(&["units", "--out", "/tmp/u"]).0, Subcommand::Units("/tmp/u".into()));
        assert_eq!((parsed(&["prepare"]).0, parsed(&["addons"]).0), (Subcommand::Prepare, Subcommand::Addons));
        assert!(parsed(&["units", "--out", "/tmp/u", "--bin-dir", "bin"]).1.bin_dir.is_absolute());
    }

    #[test]
    fn the_table_of_arguments_is_sound() {
        command().debug_assert();
    }
}
