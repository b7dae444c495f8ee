//! The allocator of the binaries: mimalloc, but for who had better be small ([`compact`]).

pub mod compact;

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_collect, mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

use base::Tidy;

use crate::own_code;

/// What `malloc` aligns every block to that is no smaller: C's `max_align_t`.
const NATURAL_ALIGNMENT: usize = 16;

/// To be declared as a program's `#[global_allocator]`.
///
/// Asks for a certain alignment only where a block would not have it anyway. mimalloc's aligned functions, which the
/// `mimalloc` crate always calls, take more than was asked for at most sizes above a kilobyte, and whatever is freed in
/// the same page takes longer then.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// For programs that have this allocator.
pub const TIDY: Tidy = Tidy { thread: tidy, process: own_code::let_go };

/// Lets go of the memory that this thread holds and does not use. What other threads have freed of it counts as in use until
/// the thread allocates more of the same size, which one that is idle does not.
#[expect(unsafe_code, reason = "the allocator's own interface")]
fn tidy() {
    // SAFETY: it takes no pointer, and touches nothing that is allocated.
    unsafe { mi_collect(false) }
}

const fn is_natural(size: usize, align: usize) -> bool {
    align <= NATURAL_ALIGNMENT && align <= size
}

// SAFETY: every block comes from mimalloc and goes back to it. Blocks have the size that was asked for, and the alignment:
// `mi_malloc` and its like align a block to 16 bytes or, where it is smaller, to its size; `is_natural` holds only for
// alignments that this covers, and all others are asked for. mimalloc does not unwind.
#[expect(unsafe_code, reason = "an allocator cannot be written without it; this one passes on")]
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is allowed, and a layout's alignment is a power of two.
        unsafe { if is_natural(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) } }.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        unsafe { if is_natural(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) } }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller got the block from this allocator, so from mimalloc, and gives it up.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: as for `dealloc`; where the block stays in place it keeps the alignment that it has.
        unsafe {
            if is_natural(new_size, align) {
                mi_realloc(block.cast(), new_size)
            } else {
                mi_realloc_aligned(block.cast(), new_size, align)
            }
        }
        .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of many sizes are written whole while others are there, so that what is too small or lies in another shows.
    #[test]
    #[expect(unsafe_code, reason = "the allocator's own interface")]
    fn blocks_are_aligned_apart_and_keep_their_content() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            let mut blocks = Vec::new();
            for size in (1..600).chain([1000, 1024, 1025, 2000, 3000, 5000, 8192, 70_000, 1 << 20]) {
                let layout = Layout::from_size_align(size, align).expect("a valid layout");
                let mark = u8::try_from(size % 251).expect("a remainder");
                // SAFETY: the size is not zero; the block is written within its size.
                let block = unsafe { Allocator.alloc(layout) };
                assert_eq!(block.addr() % align, 0, "{size} bytes aligned to {align}");
                // SAFETY: as above.
                unsafe { block.write_bytes(mark, size) };
                blocks.push((block, layout, mark));
            }
            for (block, layout, mark) in blocks {
                let grown = layout.size() * 3 + 1;
                // SAFETY: the block came from this allocator with this layout, and is read and given back with its new size.
                unsafe {
                    let block = Allocator.realloc(block, layout, grown);
                    assert_eq!(block.addr() % align, 0, "{grown} bytes aligned to {align}");
                    let content = std::slice::from_raw_parts(block, layout.size());
                    assert!(content.iter().all(|byte| *byte == mark), "{layout:?}");
                    Allocator.dealloc(block, Layout::from_size_align(grown, align).expect("a valid layout"));
                }
            }
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "the allocator's own interface")]
    fn zeroed_blocks_are_zero_where_others_were() {
        for size in [1, 8, 16, 100, 1024, 5000] {
            for align in [1, 8, 16, 64] {
                let layout = Layout::from_size_align(size, align).expect("a valid layout");
                // SAFETY: the size is not zero; blocks are used within it and given back with their layout.
                unsafe {
                    let used: Vec<*mut u8> = (0..64).map(|_| Allocator.alloc(layout)).collect();
                    used.iter().for_each(|block| block.write_bytes(0xa5, size));
                    used.iter().for_each(|block| Allocator.dealloc(*block, layout));
                    let zeroed: Vec<*mut u8> = (0..64).map(|_| Allocator.alloc_zeroed(layout)).collect();
                    for block in zeroed {
                        assert_eq!(block.addr() % align, 0);
                        assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0), "{layout:?}");
                        Allocator.dealloc(block, layout);
                    }
                }
            }
        }
    }
}
