//! Tubes of C tests: a name and a count of references. Which tubes there are, and what waits in
//! them, only the server knows.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null_mut, slice_from_raw_parts};

use super::jobs::{job_pri_less, job_setpos};
use super::layout::{Job, TUBE_NAME_SIZE, Tube};
use super::memory;
use super::multiset::{ms_clear, ms_init};

/// A tube that nobody refers to yet, or null without memory. A name that is too long is cut.
#[unsafe(no_mangle)]
unsafe extern "C" fn make_tube(name: *const c_char) -> *mut Tube {
    // SAFETY: zeros are a tube: numbers, null pointers and functions that are not set.
    let tube: *mut Tube = unsafe { memory::new() };
    if tube.is_null() {
        return null_mut();
    }
    // SAFETY: the tube was just made, and the name is a C string; what is copied of it leaves a
    // zero behind it.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes();
        let len = name.len().min(TUBE_NAME_SIZE - 1);
        let name = &*slice_from_raw_parts(name.as_ptr().cast::<c_char>(), len);
        (&mut (*tube).name)[..len].copy_from_slice(name);
        (*tube).ready.less = Some(job_pri_less);
        (*tube).ready.setpos = Some(job_setpos);
        (*tube).delay.less = Some(job_due_less);
        (*tube).delay.setpos = Some(job_setpos);
        ms_init(&raw mut (*tube).waiting_conns, None, None);
        (*tube).buried.prev = &raw mut (*tube).buried;
        (*tube).buried.next = &raw mut (*tube).buried;
    }
    tube
}

/// Counts one more reference. Null is fine.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn tube_iref(tube: *mut Tube) {
    if !tube.is_null() {
        // SAFETY: the caller gives a tube.
        unsafe { (*tube).refs += 1 };
    }
}

/// Counts one reference less; at none the tube is gone. Null is fine.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn tube_dref(tube: *mut Tube) {
    if tube.is_null() {
        return;
    }
    // SAFETY: the caller gives a tube, and does not use it again if this was the last reference.
    unsafe {
        assert!((*tube).refs > 0, "a reference was given back twice");
        (*tube).refs -= 1;
        if (*tube).refs == 0 {
            libc::free((*tube).ready.data.cast());
            libc::free((*tube).delay.data.cast());
            ms_clear(&raw mut (*tube).waiting_conns);
            libc::free(tube.cast());
        }
    }
}

unsafe extern "C" fn job_due_less(one: *mut c_void, other: *mut c_void) -> c_int {
    let key = |job: *mut c_void| {
        // SAFETY: only jobs are in heaps of tubes.
        let job = unsafe { &*job.cast::<Job>() };
        (job.r.deadline_at, job.r.id)
    };
    (key(one) < key(other)).into()
}
