//! Memory for what is about to be computed, asked of the kernel in one call instead of a fault for each page.
//!
//! Only makes it quick: where nothing can be asked for, nothing is different.

/// Bytes: what it takes to compile a policy of some hundred rules.
#[cfg(target_env = "gnu")]
const SIZE: usize = 768 * 1024;

/// Lets the heap grow by so much as a compile takes, and touches it. Of a process that was copied before, the copy has
/// nothing of it.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn grow() {
    // More than the heap has left after it has grown by itself, so that it must grow now.
    const BLOCK: usize = 256 * 1024;
    let size = libc::c_int::try_from(SIZE).unwrap_or(libc::c_int::MAX);
    // SAFETY: mallopt(3) takes integers; the block is freed once and never used; sbrk(0) only asks; MADV_POPULATE_WRITE
    // (madvise(2), Linux 5.14) changes no content of the pages, which lie in the heap that malloc has just got.
    unsafe {
        let begin = libc::sbrk(0) as usize;
        libc::mallopt(libc::M_TOP_PAD, size);
        // Blocks of the size of tables come from the heap too, and what is free at its end stays.
        libc::mallopt(libc::M_MMAP_THRESHOLD, size);
        libc::mallopt(libc::M_TRIM_THRESHOLD, size.saturating_mul(8));
        // Small blocks wait in the thread's own lists alone: others are joined anew at every large one.
        libc::mallopt(libc::M_MXFAST, 0);
        libc::free(std::hint::black_box(libc::malloc(BLOCK)));
        let page = 4096;
        let begin = begin.next_multiple_of(page);
        let length = (libc::sbrk(0) as usize).saturating_sub(begin).min(SIZE);
        libc::madvise(begin as *mut libc::c_void, length, libc::MADV_POPULATE_WRITE);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn grow() {}

/// Keeps what is freed for what is computed next: for a process that computes the same again with every keystroke.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn keep() {
    // SAFETY: mallopt(3) takes integers.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn keep() {}
