//! The driver as a process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use component_base::flags::{self, Errors, Flag, FlagSet, Options};
use component_base::serving::BoxError;
use component_base::{Component, Known, Lifecycle, no_config_file, notify};
use rustix::fs::{FlockOperation, flock};
use sys::exec::LinuxExec;
use sys::mounts::LinuxMounts;

use crate::driver::{Driver, Machine, Settings};
use crate::registration::Registrar;

/// The longest a node's id may be, for the specification.
const LONGEST_NODE_BYTES: usize = 192;
/// The longest a driver's name may be.
const LONGEST_NAME_BYTES: usize = 63;

const FLAGS: &[FlagSet] = &[
    flags::GLOBAL,
    flags::LOGS,
    FlagSet {
        title: "csi-local",
        flags: &[
            Flag::string("endpoint", "/csi/csi.sock").help("The path of the socket to serve at."),
            Flag::string("driver-name", "csi-local.coxswain.local").help("The name of the driver."),
            Flag::string("kubelet-registration-socket", "").help("The path of the socket to make where the kubelet looks for plugins; without one somebody else registers the driver."),
            Flag::string("kubelet-endpoint", "").help("The path of the endpoint as the kubelet sees it; the endpoint itself where empty."),
            Flag::string("node-id", "").help("What this node is called: the name of its Node. Required."),
            Flag::string("root", "/var/lib/csi-local").help("The directory that volumes are kept in."),
            Flag::int("capacity-bytes", "0")
                .help("What all volumes may hold together, in bytes; 0 stands for the whole filesystem."),
            Flag::int("max-volumes-per-node", "0")
                .help("How many volumes the scheduler may bring to this node; 0 stands for no limit."),
        ],
    },
];

const COMPONENT: Component = Component {
    name: "csi-local",
    about: "Serves volumes on the node's own disk by the Container Storage Interface.",
    flags: FLAGS,
    gates: Known::KUBERNETES,
    prepare: no_config_file,
    drain: Duration::from_secs(20),
};

/// Runs the binary. `tidy` is called by threads before they sleep, as [`component_base::run`] says.
#[must_use]
pub fn main(tidy: base::Tidy) -> ExitCode {
    component_base::run(&COMPONENT, tidy, run)
}

fn settings(options: &Options) -> Result<Settings, BoxError> {
    let mut errors = Errors::new();
    let (name, node) = (options.string("driver-name"), options.string("node-id"));
    errors.check(!node.is_empty(), "--node-id is required");
    errors.check(node.len() <= LONGEST_NODE_BYTES, format_args!("--node-id is longer than {LONGEST_NODE_BYTES} bytes"));
    let of_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME_BYTES && name.bytes().all(of_domain);
    errors.check(is_name, format_args!("--driver-name must have the form of a domain name, not {name:?}"));
    let (capacity, max_volumes) = (options.int("capacity-bytes"), options.int("max-volumes-per-node"));
    errors.check(capacity >= 0, "--capacity-bytes must not be negative");
    errors.check(max_volumes >= 0, "--max-volumes-per-node must not be negative");
    let root = PathBuf::from(options.string("root"));
    errors.check(root.is_absolute(), "--root must be an absolute path");
    errors.into_result()?;
    Ok(Settings {
        name: name.to_owned(),
        node: node.to_owned(),
        root,
        capacity_bytes: (capacity > 0).then_some(capacity),
        max_volumes,
    })
}

/// Nobody else may be at work in the same directory: who begins clears what is half done.
fn hold(root: &Path) -> Result<File, BoxError> {
    std::fs::create_dir_all(root)?;
    let path = root.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path)?;
    let held = flock(&file, FlockOperation::NonBlockingLockExclusive);
    held.map_err(|error| format!("{}: another driver is at work: {error}", path.display()))?;
    Ok(file)
}

async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let settings = settings(&options)?;
    let _held = hold(&settings.root)?;
    let machine = Machine {
        exec: Arc::new(LinuxExec),
        mounts: Arc::new(LinuxMounts),
        clock: lifecycle.clock().clone(),
        tasks: lifecycle.tasks().clone(),
    };
    let socket = socket_path(&options, "endpoint");
    let registrar = Registrar { name: settings.name.clone(), endpoint: kubelet_endpoint(&options) };
    let registration = socket_path(&options, "kubelet-registration-socket");
    let driver = Driver::open(settings, machine)?;
    tracing::info!(socket = %socket.display(), "serving");
    let ended = |socket: &Path, error: io::Error| BoxError::from(format!("{}: {error}", socket.display()));
    let serving = async { driver.serve(&socket).await.map_err(|error| ended(&socket, error)) };
    let registering = async {
        if registration.as_os_str().is_empty() {
            return std::future::pending().await;
        }
        let token = lifecycle.events().shutdown_initiated.token();
        registrar.serve(&registration, token).await.map_err(|error| ended(&registration, error))
    };
    notify::ready();
    tokio::select! {
        served = serving => served,
        // It ends by itself when the component is asked to.
        registered = registering => registered,
        () = asked_to_end(&lifecycle, &registration) => Ok(()),
    }
}

/// Waits for the request to end, where nobody has to tell a kubelet first.
async fn asked_to_end(lifecycle: &Lifecycle, registration: &Path) {
    if registration.as_os_str().is_empty() {
        lifecycle.shutdown_requested().await;
    } else {
        std::future::pending().await
    }
}

fn socket_path(options: &Options, flag: &str) -> PathBuf {
    let text = options.string(flag);
    text.strip_prefix("unix://").unwrap_or(text).into()
}

/// The path at which the kubelet finds the driver.
fn kubelet_endpoint(options: &Options) -> String {
    let text = options.string("kubelet-endpoint");
    let path = if text.is_empty() { socket_path(options, "endpoint") } else { text.into() };
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_flags_is_sound() {
        assert_eq!(flags::check_table(FLAGS), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = ["--node-id=a", "--root=/r", "--capacity-bytes=5"].map(str::to_owned);
        let read = settings(&flags::parse(FLAGS, good).unwrap()).unwrap();
        assert_eq!((read.node.as_str(), read.capacity_bytes, read.max_volumes), ("a", Some(5), 0));
        for (argument, part) in [
            ("--root=relative", "--root"),
            ("--driver-name=a/b", "--driver-name"),
            ("--capacity-bytes=-1", "--capacity-bytes"),
            ("--max-volumes-per-node=-1", "--max-volumes-per-node"),
            ("--root=/r", "--node-id"),
        ] {
            let options = flags::parse(FLAGS, [argument.to_owned()]).unwrap();
            let error = settings(&options).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn one_process_for_each_directory() {
        let root = tempfile::tempdir().unwrap();
        let held = hold(root.path()).unwrap();
        let error = hold(root.path()).unwrap_err().to_string();
        assert!(error.contains("another driver"), "{error}");
        drop(held);
        hold(root.path()).unwrap();
    }

    #[test]
    fn a_kubelet_may_see_the_socket_elsewhere() {
        for (arguments, expected) in [
            (vec!["--endpoint=unix:///csi/csi.sock"], "/csi/csi.sock"),
            (
                vec!["--endpoint=/csi/csi.sock", "--kubelet-endpoint=/var/lib/kubelet/csi.sock"],
                "/var/lib/kubelet/csi.sock",
            ),
        ] {
            let options = flags::parse(FLAGS, arguments.into_iter().map(str::to_owned)).unwrap();
            assert_eq!(kubelet_endpoint(&options), expected);
        }
    }
}
