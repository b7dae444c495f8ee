//! Which code an input led through, in a build that counts that (`make fuzz`: the compiler's own counters, one for each branch
//! of all code but the standard library's). Without, as in a build of the tests, nobody knows.

#[cfg(not(feature = "fuzz-coverage"))]
pub(crate) use without::Coverage;

#[cfg(feature = "fuzz-coverage")]
pub(crate) use with::Coverage;

#[cfg(not(feature = "fuzz-coverage"))]
mod without {
    pub(crate) enum Coverage {}

    impl Coverage {
        pub(crate) fn of_this_build() -> Option<Self> {
            None
        }

        pub(crate) fn is_new(&mut self) -> bool {
            match *self {}
        }
    }
}

#[cfg(feature = "fuzz-coverage")]
mod with {
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    /// Counters are looked at page by page: of two million, an input moves a few hundred.
    const PAGE: usize = 4096;
    /// One input in so many is also looked for in pages in which nothing ever was.
    const ALL_PAGES: u64 = 64;

    static START: AtomicUsize = AtomicUsize::new(0);
    static LENGTH: AtomicUsize = AtomicUsize::new(0);

    /// The linker's constructors tell where the counters are, before anything else runs.
    #[expect(unsafe_code, reason = "the compiler's counters call it by this name")]
    #[unsafe(no_mangle)]
    extern "C" fn __sanitizer_cov_8bit_counters_init(start: *const u8, end: *const u8) {
        START.store(start as usize, Ordering::Relaxed);
        LENGTH.store(end as usize - start as usize, Ordering::Relaxed);
    }

    fn counters() -> &'static [AtomicU8] {
        let (start, length) = (START.load(Ordering::Relaxed), LENGTH.load(Ordering::Relaxed));
        if length == 0 {
            return &[];
        }
        // SAFETY: the section of the counters, which lives as long as the program; bytes may be seen as atomics.
        #[expect(unsafe_code, reason = "the counters are known by their address only")]
        unsafe {
            std::slice::from_raw_parts(start as *const AtomicU8, length)
        }
    }

    /// What has been seen of the code so far.
    pub(crate) struct Coverage {
        /// For each counter the ranges of counts that were seen, one bit each.
        seen: Vec<u8>,
        /// Pages in which something was.
        active: Vec<bool>,
        inputs: u64,
    }

    impl Coverage {
        pub(crate) fn of_this_build() -> Option<Self> {
            let length = counters().len();
            let pages = length.div_ceil(PAGE);
            (length > 0).then(|| Self { seen: vec![0; length], active: vec![false; pages], inputs: 0 })
        }

        /// Whether what ran since the last question went where nothing went before, or in another order of magnitude.
        pub(crate) fn is_new(&mut self) -> bool {
            let looks_at_all = self.inputs.is_multiple_of(ALL_PAGES);
            self.inputs += 1;
            let mut is_new = false;
            let pages = counters().chunks(PAGE).zip(self.seen.chunks_mut(PAGE)).zip(&mut self.active);
            for ((page, seen), active) in pages.filter(|(_, active)| looks_at_all || **active) {
                for (counter, seen) in page.iter().zip(seen) {
                    let count = counter.load(Ordering::Relaxed);
                    if count != 0 {
                        counter.store(0, Ordering::Relaxed);
                        *active = true;
                        is_new |= *seen | range(count) != *seen;
                        *seen |= range(count);
                    }
                }
            }
            is_new
        }
    }

    /// The bit of a count's order of magnitude.
    fn range(count: u8) -> u8 {
        match count {
            0..=3 => 1 << count.saturating_sub(1),
            4..=7 => 1 << 3,
            8..=15 => 1 << 4,
            16..=31 => 1 << 5,
            32..=127 => 1 << 6,
            128.. => 1 << 7,
        }
    }
}
