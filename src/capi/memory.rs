//! Memory that C may free, and that comes from C.

use std::ffi::{c_int, c_void};

/// Zeroed memory of `size` bytes, released with `free`; null without memory.
#[unsafe(no_mangle)]
extern "C" fn zalloc(size: c_int) -> *mut c_void {
    // A negative size is more than there is.
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    // SAFETY: any two numbers may be asked for.
    unsafe { libc::calloc(1, size) }
}

/// A T of zeros, released with `free`; null without memory.
///
/// # Safety
/// Zeros must be a value of T.
pub(super) unsafe fn new<T>() -> *mut T {
    // SAFETY: any two numbers may be asked for.
    unsafe { libc::calloc(1, size_of::<T>()) }.cast()
}

/// Sees to it that the array at `items`, from `malloc` or null, has a place for one more than
/// `len`, and says whether it has.
pub(super) fn grow(items: &mut *mut *mut c_void, cap: &mut usize, len: usize) -> bool {
    if len < *cap {
        return true;
    }
    let wanted = 2 * (len + 1);
    // SAFETY: the array is from `malloc` or null, and nobody has another pointer into it.
    let grown = unsafe { libc::realloc((*items).cast(), wanted * size_of::<*mut c_void>()) };
    if grown.is_null() {
        return false;
    }
    *items = grown.cast();
    *cap = wanted;
    true
}
