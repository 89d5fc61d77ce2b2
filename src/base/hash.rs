//! Two hash functions. Ids are assigned by us and get a cheap one; names are chosen by clients and
//! get one with a key, so that nobody can prepare names that collide.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use siphasher::sip::SipHasher13;

use crate::base::name::TubeName;

/// Hash of something that clients do not choose.
#[must_use]
pub fn id_hash(id: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Hashes tube names under a key that no client knows.
#[derive(Clone, Copy, Debug)]
pub struct NameHasher {
    key: [u64; 2],
}

impl NameHasher {
    /// The hasher with this key. Draw the key from the system's randomness; tests fix it.
    #[must_use]
    pub fn new(key: [u64; 2]) -> NameHasher {
        NameHasher { key }
    }

    /// The name's hash.
    #[must_use]
    pub fn hash(self, name: TubeName<'_>) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        hasher.write(name.as_bytes());
        hasher.finish()
    }
}
