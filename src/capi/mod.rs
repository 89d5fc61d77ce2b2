//! The C interface: what C tests written to beanstalkd's `dat.h` find when they are linked with
//! this library. Compiled with the feature `ctests` alone; `ctests/README.md` says how it is used.
//!
//! Under the C names stand the engine's own rules wherever they can be had apart from the engine:
//!
//! - [`heap`]: the moves are those of every heap of the engine, `base::sift`, over C's memory and
//!   with two children instead of four;
//! - [`multiset`]: the cursor is the one by which waiters take turns, `base::turns`;
//! - [`jobs`]: order and ids are the engine's. The table of ids cannot be: tests look at its
//!   chains, which go through the jobs (`ht_next`) and begin in a given number of buckets, and
//!   `engine::index` has no chains, so that it never has to move all its entries at once;
//! - [`options`]: `cli::parse`, with its messages and exit statuses;
//! - [`server`]: the socket is made by `net::listener`; what serves on it is the program itself,
//!   run in the place of the test's child.
//!
//! Everything that tests allocate or free themselves comes from C's `malloc`. A panic does not
//! cross into C: it ends the process, which is a failed test.

mod heap;
mod jobs;
mod layout;
mod memory;
mod multiset;
mod options;
mod server;
mod tubes;
