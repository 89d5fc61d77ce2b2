//! The heap of C tests: the moves of the engine's heaps over an array that C owns.

use std::ffi::{c_int, c_void};
use std::slice;

use super::layout::Heap;
use super::memory::grow;
use crate::base::sift::{self, Nodes};

/// Children of an element.
const ARITY: usize = 2;

/// The elements of a heap. C's two functions are part of the heap, so it is borrowed whole.
struct Elements<'a> {
    data: &'a mut [*mut c_void],
    heap: &'a Heap,
}

impl<'a> Elements<'a> {
    /// # Safety
    /// `data` has `len` elements, which live as long as the functions say, and both functions are
    /// set.
    unsafe fn of(heap: &'a Heap) -> Elements<'a> {
        let data = if heap.len == 0 {
            &mut []
        } else {
            // SAFETY: the caller says so. The array is not part of the structure.
            unsafe { slice::from_raw_parts_mut(heap.data, heap.len) }
        };
        Elements { data, heap }
    }
}

impl Nodes for Elements<'_> {
    type Node = *mut c_void;

    fn len(&self) -> usize {
        self.data.len()
    }

    fn node(&self, at: usize) -> *mut c_void {
        self.data[at]
    }

    fn put(&mut self, at: usize, node: *mut c_void) {
        self.data[at] = node;
        let setpos = self.heap.setpos.expect("a heap has its two functions");
        // SAFETY: the function is made for the elements of this heap.
        unsafe { setpos(node, at) };
    }

    fn precedes(&self, one: &*mut c_void, other: &*mut c_void) -> bool {
        let less = self.heap.less.expect("a heap has its two functions");
        // SAFETY: the function is made for the elements of this heap.
        unsafe { less(*one, *other) != 0 }
    }
}

/// Adds `x`: 1, or 0 without memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn heapinsert(heap: *mut Heap, x: *mut c_void) -> c_int {
    // SAFETY: the caller gives a heap that nobody else uses meanwhile.
    let heap = unsafe { &mut *heap };
    if !grow(&mut heap.data, &mut heap.cap, heap.len) {
        return 0;
    }
    let at = heap.len;
    heap.len += 1;
    // SAFETY: there is room for one more, and it is written before it is read.
    unsafe { heap.data.add(at).write(x) };
    // SAFETY: all `len` elements are written.
    let mut elements = unsafe { Elements::of(heap) };
    sift::rise(&mut elements, ARITY, at);
    1
}

/// The element at `k`, taken out, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn heapremove(heap: *mut Heap, k: usize) -> *mut c_void {
    // SAFETY: the caller gives a heap that nobody else uses meanwhile.
    let heap = unsafe { &mut *heap };
    if k >= heap.len {
        return std::ptr::null_mut();
    }
    // SAFETY: all `len` elements are there.
    let mut elements = unsafe { Elements::of(heap) };
    let removed = elements.node(k);
    // The last one is told of its place even if it is the one that goes.
    let last = elements.node(elements.len() - 1);
    elements.put(k, last);
    heap.len -= 1;
    if k < heap.len {
        // SAFETY: the elements but the last are there.
        let mut elements = unsafe { Elements::of(heap) };
        sift::settle(&mut elements, ARITY, k);
    }
    removed
}
