//! `ContainerStopSignals` (KEP-4960): the signal by which a container is asked to end, in the words of the API and of the
//! runtime's interface.

use api_types::core_v1::Container;
use node_api::cri::v1::Signal;

/// What the runtime is told of a container; it decides itself, mostly by the image, where the container names no signal.
pub fn of_container(container: &Container) -> Signal {
    let named = container.lifecycle.as_ref().and_then(|hooks| hooks.stop_signal.as_deref());
    let name = named.map(|name| name.replace('+', "PLUS").replace('-', "MINUS"));
    name.and_then(|name| Signal::from_str_name(&name)).unwrap_or(Signal::RuntimeDefault)
}

/// What statuses show of the runtime's number; nothing where it is not known.
pub fn shown(number: i32) -> Option<String> {
    let signal = Signal::try_from(number).ok().filter(|signal| *signal != Signal::RuntimeDefault)?;
    Some(signal.as_str_name().replace("PLUS", "+").replace("MINUS", "-"))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Lifecycle;

    use super::*;

    #[test]
    fn names_are_those_of_the_api() {
        for (name, signal) in [
            ("SIGTERM", Signal::Sigterm),
            ("SIGRTMIN", Signal::Sigrtmin),
            ("SIGRTMIN+3", Signal::Sigrtminplus3),
            ("SIGRTMAX-14", Signal::Sigrtmaxminus14),
        ] {
            let hooks = Lifecycle { stop_signal: Some(name.into()), ..Lifecycle::default() };
            let container = Container { lifecycle: Some(hooks.into()), ..Container::default() };
            assert_eq!((of_container(&container), shown(signal.into()).as_deref()), (signal, Some(name)));
        }
        assert_eq!((of_container(&Container::default()), shown(0), shown(999)), (Signal::RuntimeDefault, None, None));
    }
}
