//! The pod's first process: it holds the pod's namespaces open, reaps orphans where the containers share one process
//! namespace, and ends on SIGINT or SIGTERM. `-v` prints the version.

use std::ffi::c_int;

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
const SIGCHLD: c_int = 17;
const WNOHANG: c_int = 1;

unsafe extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn pause() -> c_int;
    fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

extern "C" fn end(_signal: c_int) {
    // SAFETY: `_exit` is async-signal-safe and takes no pointer.
    unsafe { _exit(0) }
}

extern "C" fn reap(_signal: c_int) {
    // SAFETY: `waitpid` is async-signal-safe; a null status pointer means that the status is not wanted.
    while unsafe { waitpid(-1, std::ptr::null_mut(), WNOHANG) } > 0 {}
}

fn main() {
    if std::env::args().nth(1).is_some_and(|argument| argument.starts_with("-v")) {
        println!("pause {}", env!("CARGO_PKG_VERSION"));
        return;
    }
    // As PID 1 of its namespace a process gets only the signals it has a handler for.
    // SAFETY: the handlers are `extern "C"`, live for ever and call only async-signal-safe functions.
    unsafe {
        signal(SIGINT, end);
        signal(SIGTERM, end);
        signal(SIGCHLD, reap);
    }
    loop {
        // SAFETY: takes and returns plain integers.
        unsafe { pause() };
    }
}
