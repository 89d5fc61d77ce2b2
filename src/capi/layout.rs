//! The structures of `ctests/include/dat.h`, member for member. Offsets and sizes are a contract
//! with C tests that were compiled elsewhere, so each is checked here; `ctests/layout.c` checks the
//! other side. LP64 only.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use crate::base::turns::Cursor;

/// Binary heap of any things. All zero but for the functions is a valid empty one.
#[repr(C)]
pub(super) struct Heap {
    pub(super) cap: usize,
    pub(super) len: usize,
    /// From `malloc`; whoever made the heap frees it.
    pub(super) data: *mut *mut c_void,
    pub(super) less: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    /// Told each new place of an element.
    pub(super) setpos: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

/// What a multiset calls when it changes: with itself, the element and its index.
pub(super) type OnChange = unsafe extern "C" fn(*mut Ms, *mut c_void, usize);

/// Multiset that is taken from in turn.
#[repr(C)]
pub(super) struct Ms {
    pub(super) len: usize,
    pub(super) cap: usize,
    pub(super) last: Cursor,
    /// From `malloc`.
    pub(super) items: *mut *mut c_void,
    pub(super) oninsert: Option<OnChange>,
    pub(super) onremove: Option<OnChange>,
}

/// The part of a job that the binlog keeps. Times are nanoseconds.
#[repr(C)]
pub(super) struct Jobrec {
    pub(super) id: u64,
    pub(super) pri: u32,
    pub(super) delay: i64,
    pub(super) ttr: i64,
    pub(super) body_size: i32,
    pub(super) created_at: i64,
    pub(super) deadline_at: i64,
    pub(super) reserve_ct: u32,
    pub(super) timeout_ct: u32,
    pub(super) release_ct: u32,
    pub(super) bury_ct: u32,
    pub(super) kick_ct: u32,
    pub(super) state: u8,
}

/// A job.
#[repr(C)]
pub(super) struct Job {
    pub(super) r: Jobrec,
    pub(super) pad: [u8; 8],
    pub(super) tube: *mut Tube,
    pub(super) prev: *mut Job,
    pub(super) next: *mut Job,
    /// Next in the same bucket of the table of ids.
    pub(super) ht_next: *mut Job,
    pub(super) heap_index: usize,
    pub(super) file: *mut c_void,
    pub(super) fnext: *mut Job,
    pub(super) fprev: *mut Job,
    pub(super) reserver: *mut c_void,
    pub(super) walresv: c_int,
    pub(super) walused: c_int,
    pub(super) body: *mut c_char,
}

/// Longest name of a tube with its NUL.
pub(super) const TUBE_NAME_SIZE: usize = 201;

/// A tube.
#[repr(C)]
pub(super) struct Tube {
    pub(super) refs: u32,
    pub(super) name: [c_char; TUBE_NAME_SIZE],
    pub(super) ready: Heap,
    pub(super) delay: Heap,
    pub(super) waiting_conns: Ms,
    pub(super) stat: [u64; 7],
    pub(super) using_ct: u32,
    pub(super) watching_ct: u32,
    pub(super) pause: i64,
    pub(super) unpause_at: i64,
    /// Head of a list.
    pub(super) buried: Job,
}

/// The binlog's settings, and members that no test reads.
#[repr(C)]
pub(super) struct Wal {
    pub(super) filesize: c_int,
    pub(super) r#use: c_int,
    pub(super) dir: *mut c_char,
    pub(super) head: *mut c_void,
    pub(super) cur: *mut c_void,
    pub(super) tail: *mut c_void,
    pub(super) nfile: c_int,
    pub(super) next: c_int,
    pub(super) resv: i64,
    pub(super) alive: i64,
    pub(super) nmig: i64,
    pub(super) nrec: i64,
    pub(super) wantsync: c_int,
    /// Nanoseconds.
    pub(super) syncrate: i64,
    pub(super) lastsync: i64,
}

/// A socket and who cares for it.
#[repr(C)]
pub(super) struct Socket {
    pub(super) fd: c_int,
    pub(super) f: Option<unsafe extern "C" fn(*mut c_void, c_int)>,
    pub(super) x: *mut c_void,
    pub(super) added: c_int,
}

/// What the server is to be.
#[repr(C)]
pub(super) struct Server {
    pub(super) port: *mut c_char,
    pub(super) addr: *mut c_char,
    pub(super) user: *mut c_char,
    pub(super) wal: Wal,
    pub(super) sock: Socket,
    pub(super) conns: Heap,
}

/// Asserts the size of a structure and the offsets of members from which the others follow.
macro_rules! layout {
    ($name:ident: $size:literal, $($member:ident $at:literal),+) => {
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $member) == $at);)+
        };
    };
}

layout!(Heap: 40, cap 0, len 8, data 16, less 24, setpos 32);
layout!(Ms: 48, len 0, cap 8, last 16, items 24, oninsert 32, onremove 40);
layout!(Jobrec: 80, id 0, pri 8, delay 16, ttr 24, body_size 32, created_at 40, deadline_at 48,
    reserve_ct 56, timeout_ct 60, release_ct 64, bury_ct 68, kick_ct 72, state 76);
layout!(Job: 176, r 0, pad 80, tube 88, prev 96, next 104, ht_next 112, heap_index 120, file 128,
    fnext 136, fprev 144, reserver 152, walresv 160, walused 164, body 168);
layout!(Tube: 592, refs 0, name 4, ready 208, delay 248, waiting_conns 288, stat 336,
    using_ct 392, watching_ct 396, pause 400, unpause_at 408, buried 416);
layout!(Wal: 104, filesize 0, r#use 4, dir 8, head 16, cur 24, tail 32, nfile 40, next 44, resv 48,
    alive 56, nmig 64, nrec 72, wantsync 80, syncrate 88, lastsync 96);
layout!(Socket: 32, fd 0, f 8, x 16, added 24);
layout!(Server: 200, port 0, addr 8, user 16, wal 24, sock 128, conns 160);
