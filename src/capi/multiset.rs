//! The multiset of C tests: an array whose holes are filled with the last element, taken from by
//! the rule of the engine's waiters.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::layout::{Ms, OnChange};
use super::memory::grow;
use crate::base::turns::Cursor;

/// Makes the set empty. Either function may be null.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ms_init(
    set: *mut Ms,
    oninsert: Option<OnChange>,
    onremove: Option<OnChange>,
) {
    let empty = Ms {
        len: 0,
        cap: 0,
        last: Cursor::default(),
        items: null_mut(),
        oninsert,
        onremove,
    };
    // SAFETY: the caller gives memory for a set.
    unsafe { set.write(empty) };
}

/// Adds `item`, once more if it is there already: 1, or 0 without memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn ms_append(set: *mut Ms, item: *mut c_void) -> c_int {
    // SAFETY: the caller gives a set that nobody else uses before the function is called.
    let oninsert = unsafe {
        let set = &mut *set;
        if !grow(&mut set.items, &mut set.cap, set.len) {
            return 0;
        }
        set.items.add(set.len).write(item);
        set.len += 1;
        set.oninsert
    };
    if let Some(oninsert) = oninsert {
        // SAFETY: nothing of the set is borrowed here.
        unsafe { oninsert(set, item, (*set).len - 1) };
    }
    1
}

/// Takes `item` out, once: 1, or 0 if it is not in.
#[unsafe(no_mangle)]
unsafe extern "C" fn ms_remove(set: *mut Ms, item: *mut c_void) -> c_int {
    // SAFETY: the caller gives a set.
    match unsafe { position(set, item) } {
        None => 0,
        Some(index) => {
            // SAFETY: the index was found in the set.
            unsafe { remove_at(set, index) };
            1
        }
    }
}

/// Whether `item` is in: 1 or 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn ms_contains(set: *mut Ms, item: *mut c_void) -> c_int {
    // SAFETY: the caller gives a set.
    unsafe { position(set, item) }.is_some().into()
}

/// Removes all, gives the memory back, and leaves an empty set.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ms_clear(set: *mut Ms) {
    // SAFETY: the caller gives a set; its items are from `malloc`.
    unsafe {
        for index in (0..(*set).len).rev() {
            remove_at(set, index);
        }
        libc::free((*set).items.cast());
        ms_init(set, (*set).oninsert, (*set).onremove);
    }
}

/// The item whose turn it is, taken out, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn ms_take(set: *mut Ms) -> *mut c_void {
    // SAFETY: the caller gives a set, and the index is one of it.
    unsafe {
        let len = (*set).len;
        let Some(index) = (*set).last.take(len) else {
            return null_mut();
        };
        remove_at(set, index)
    }
}

/// # Safety
/// `set` is a set.
unsafe fn position(set: *const Ms, item: *mut c_void) -> Option<usize> {
    // SAFETY: the set has `len` items.
    unsafe { (0..(*set).len).find(|&index| *(*set).items.add(index) == item) }
}

/// # Safety
/// `set` is a set, and `index` below its length.
unsafe fn remove_at(set: *mut Ms, index: usize) -> *mut c_void {
    // SAFETY: both places are within the set, which nobody borrows.
    unsafe {
        let item = *(*set).items.add(index);
        (*set).len -= 1;
        *(*set).items.add(index) = *(*set).items.add((*set).len);
        if let Some(onremove) = (*set).onremove {
            onremove(set, item, index);
        }
        item
    }
}
