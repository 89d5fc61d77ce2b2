//! Jobs of C tests and the table of their ids. Order and ids are the engine's; why the table is
//! not, the module above says.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::layout::{Job, Tube};
use super::tubes::{tube_dref, tube_iref};
use crate::base::ids::{JobId, Pri};
use crate::base::slot::Slot;
use crate::engine::IdScheme;
use crate::engine::job::ReadyKey;
use crate::sys::clock;

/// Buckets at first. Tests know the number.
const BUCKETS: usize = 12289;
/// Jobs for each bucket before there are more buckets.
const LOAD_MAX: usize = 4;

/// The way from an id to its job: chains through the jobs themselves, the newest first.
struct Table {
    buckets: Vec<*mut Job>,
    len: usize,
    /// How many ids were counted.
    sequence: u64,
}

/// C tests have one thread.
static mut TABLE: Table = Table {
    buckets: Vec::new(),
    len: 0,
    sequence: 0,
};

/// # Safety
/// The process has one thread, and the last one of these borrows is over.
unsafe fn table() -> &'static mut Table {
    let table = &raw mut TABLE;
    // SAFETY: the caller says so.
    let table = unsafe { &mut *table };
    if table.buckets.is_empty() {
        table.buckets = vec![null_mut(); BUCKETS];
    }
    table
}

impl Table {
    fn next_id(&mut self) -> u64 {
        self.sequence += 1;
        IdScheme::Plain.id(self.sequence, Slot(0)).0
    }

    fn bucket(&mut self, id: u64) -> &mut *mut Job {
        let index = id % self.buckets.len() as u64;
        &mut self.buckets[index as usize]
    }

    /// # Safety
    /// `job` is a job that is not in the table.
    unsafe fn insert(&mut self, job: *mut Job) {
        if self.len >= LOAD_MAX * self.buckets.len() {
            // SAFETY: all jobs in the table live.
            unsafe { self.grow() };
        }
        // SAFETY: the caller says so.
        unsafe { self.link(job) };
        self.len += 1;
    }

    /// # Safety
    /// `job` is a job that is in no chain.
    unsafe fn link(&mut self, job: *mut Job) {
        // SAFETY: the caller says so.
        unsafe {
            let first = self.bucket((*job).r.id);
            (*job).ht_next = *first;
            *first = job;
        }
    }

    /// Takes more buckets. They are never taken back: no process of a test lives long.
    ///
    /// # Safety
    /// All jobs in the table live.
    unsafe fn grow(&mut self) {
        let more = vec![null_mut(); 2 * self.buckets.len() + 1];
        for mut job in std::mem::replace(&mut self.buckets, more) {
            while !job.is_null() {
                // SAFETY: the job lives, and its chain is left behind.
                unsafe {
                    let next = (*job).ht_next;
                    self.link(job);
                    job = next;
                }
            }
        }
    }

    /// Where the pointer to the job with this id is, or the null at the end of its chain.
    ///
    /// # Safety
    /// All jobs in the table live.
    unsafe fn find(&mut self, id: u64) -> &mut *mut Job {
        let mut at: *mut *mut Job = self.bucket(id);
        // SAFETY: `at` is a place in the table or in a job that lives.
        unsafe {
            while !(*at).is_null() && (**at).r.id != id {
                at = &raw mut (**at).ht_next;
            }
            &mut *at
        }
    }

    /// Takes `job` out if it is in.
    ///
    /// # Safety
    /// It lives, and so do all jobs in the table.
    unsafe fn remove(&mut self, job: *mut Job) {
        // SAFETY: the caller says so.
        unsafe {
            let at = self.find((*job).r.id);
            if *at == job {
                *at = (*job).ht_next;
                (*job).ht_next = null_mut();
                self.len -= 1;
            }
        }
    }
}

/// A job outside the table, with id 0; null without memory. Its body is behind it.
#[unsafe(no_mangle)]
extern "C" fn allocate_job(body_size: c_int) -> *mut Job {
    let body_len = usize::try_from(body_size).unwrap_or(0);
    // SAFETY: zeros are a job: numbers and null pointers. The body's place is within the memory.
    unsafe {
        let job: *mut Job = libc::calloc(1, size_of::<Job>() + body_len).cast();
        if !job.is_null() {
            (*job).r.body_size = body_size;
            (*job).r.created_at = clock::wall();
            (*job).body = job.add(1).cast();
        }
        job
    }
}

/// A job in the table, or null without memory. Id 0 stands for the next one; `tube` may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn make_job_with_id(
    pri: u32,
    delay: i64,
    ttr: i64,
    body_size: c_int,
    tube: *mut Tube,
    id: u64,
) -> *mut Job {
    let job = allocate_job(body_size);
    if job.is_null() {
        return null_mut();
    }
    // SAFETY: the job was just made, the caller gives a tube or null, and C tests have one thread.
    unsafe {
        let table = table();
        let r = &mut (*job).r;
        r.id = if id == 0 { table.next_id() } else { id };
        r.pri = pri;
        r.delay = delay;
        r.ttr = ttr;
        (*job).tube = tube;
        tube_iref(tube);
        table.insert(job);
    }
    job
}

/// The job with this id, or null.
#[unsafe(no_mangle)]
extern "C" fn job_find(id: u64) -> *mut Job {
    // SAFETY: C tests have one thread, and a job leaves the table before its memory goes.
    unsafe { *table().find(id) }
}

/// Takes the job out of the table if it is in, and gives back its tube and its memory. Null is
/// fine.
#[unsafe(no_mangle)]
unsafe extern "C" fn job_free(job: *mut Job) {
    if job.is_null() {
        return;
    }
    // SAFETY: the caller gives a job and does not use it again, and C tests have one thread.
    unsafe {
        table().remove(job);
        tube_dref((*job).tube);
        libc::free(job.cast());
    }
}

/// Whether `one` is to be reserved before `other`: 1 or 0.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn job_pri_less(one: *mut c_void, other: *mut c_void) -> c_int {
    let key = |job: *mut c_void| {
        // SAFETY: the caller gives jobs.
        let job = unsafe { &*job.cast::<Job>() };
        ReadyKey::new(Pri(job.r.pri), JobId(job.r.id))
    };
    (key(one) < key(other)).into()
}

/// Takes note of where a heap has put a job.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn job_setpos(job: *mut c_void, at: usize) {
    // SAFETY: the caller gives a job.
    unsafe { (*job.cast::<Job>()).heap_index = at };
}

/// Number of jobs in the table.
#[unsafe(no_mangle)]
extern "C" fn get_all_jobs_used() -> usize {
    // SAFETY: C tests have one thread.
    unsafe { table() }.len
}
