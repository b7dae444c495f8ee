//! The C library's allocator, set up to keep little: for a program that waits most of the time on a machine where memory is
//! for others, such as the kubelet.
//!
//! After a burst, what stays lies scattered among what was freed. mimalloc gives memory back by 64 KiB, of one size and one
//! thread each, so that a kubelet whose pods had come at once kept 19 MiB for 7 MiB that were in use. Here all threads
//! allocate from one heap, which lets go of every page that nothing is on; they wait for each other where several allocate
//! much at a time.

use base::Tidy;
use rustix::thread::disable_transparent_huge_pages;

use crate::own_code;

/// Blocks of at least this size are mapped, and so are given back as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 128 << 10;

/// For programs that are set up so.
pub const TIDY: Tidy = Tidy {
    thread: || (),
    process: || {
        tidy();
        own_code::let_go();
    },
};

/// To be called before there is a second thread; [`std::alloc::System`] is the allocator then.
pub fn set_up() {
    // Where it cannot be had the program takes more memory, and works.
    let _ = disable_transparent_huge_pages(true);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, value) in [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, MAPPED_BYTES)] {
        // SAFETY: it takes no pointer, and no other thread is there to allocate at the same time.
        #[expect(unsafe_code, reason = "the allocator's own interface")]
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}

/// Lets go of all pages that are not in use, of whatever thread.
fn tidy() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer, and touches nothing that is allocated.
    #[expect(unsafe_code, reason = "the allocator's own interface")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Far more than other tests of this process come and go with meanwhile.
    const BLOCKS: usize = 64 << 10;
    const BLOCK_BYTES: usize = 1 << 10;
    const KIB_GIVEN_BACK: usize = 32 << 10;

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn pages_between_blocks_in_use_are_given_back() {
        set_up();
        let mut blocks: Vec<Option<Vec<u8>>> = (0..BLOCKS).map(|_| Some(vec![1; BLOCK_BYTES])).collect();
        for (number, block) in blocks.iter_mut().enumerate() {
            // One of 16 stays: in every 64 KiB there are four.
            *block = block.take().filter(|_| number % 16 == 0);
        }
        let before = resident_kib();
        tidy();
        let after = resident_kib();
        assert!(after + KIB_GIVEN_BACK < before, "{before} KiB before, {after} KiB after");
        assert!(blocks.iter().flatten().all(|block| block.iter().all(|byte| *byte == 1)));
    }
}
