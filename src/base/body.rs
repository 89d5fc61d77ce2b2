//! Large job bodies are shared, not copied, between the store and the replies that carry them, so
//! that the deletion or timeout of a job cannot touch a body that is on its way to a client. A body
//! lives as long as the longest-lived of its holders. Small ones are copied into the store and into
//! the reply, which costs less than counting holders.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// The bytes of a job, without the CR LF that ends them on the wire. Cloning shares.
#[derive(Clone)]
pub struct Body(Repr);

#[derive(Clone)]
enum Repr {
    /// Count and bytes in one allocation.
    Gathered(Rc<[u8]>),
    /// Bytes that were read into place; moving them next to a count would copy them.
    Placed(Rc<Vec<u8>>),
}

impl Body {
    /// A body of its own with these bytes. Costs exactly one allocation.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Body {
        Body(Repr::Gathered(bytes.into()))
    }

    /// `bytes` as a body, in the memory that they are in. Spare capacity stays allocated.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Body {
        Body(Repr::Placed(Rc::new(bytes)))
    }

    /// Number of holders, this one included.
    #[must_use]
    pub fn holders(&self) -> usize {
        match &self.0 {
            Repr::Gathered(bytes) => Rc::strong_count(bytes),
            Repr::Placed(bytes) => Rc::strong_count(bytes),
        }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Gathered(bytes) => bytes,
            Repr::Placed(bytes) => bytes,
        }
    }
}

/// A body on its way: into the store or out of it, from a reader or to a writer. Small ones are
/// lent by whoever has the bytes, which are copied where they are to stay; large ones are shared.
#[derive(Clone)]
pub enum BodyCow<'a> {
    /// Bytes of somebody else.
    Borrowed(&'a [u8]),
    /// A body of which this is one holder.
    Shared(Body),
}

impl BodyCow<'_> {
    /// The body, shared if it can be and copied if not.
    #[must_use]
    pub fn to_body(&self) -> Body {
        match self {
            BodyCow::Borrowed(bytes) => Body::copy_of(bytes),
            BodyCow::Shared(body) => body.clone(),
        }
    }

    /// The body, copied only if it is somebody else's.
    #[must_use]
    pub fn into_body(self) -> Body {
        match self {
            BodyCow::Borrowed(bytes) => Body::copy_of(bytes),
            BodyCow::Shared(body) => body,
        }
    }
}

impl From<Body> for BodyCow<'_> {
    fn from(body: Body) -> Self {
        BodyCow::Shared(body)
    }
}

impl Deref for BodyCow<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            BodyCow::Borrowed(bytes) => bytes,
            BodyCow::Shared(body) => body,
        }
    }
}

impl fmt::Debug for BodyCow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_and_outlive_the_original() {
        for original in [Body::copy_of(b"work"), Body::from_vec(b"work".to_vec())] {
            let shared = original.clone();
            assert_eq!(original.as_ptr(), shared.as_ptr());
            assert_eq!(shared.holders(), 2);
            drop(original);
            assert_eq!(&shared[..], b"work");
            assert_eq!(shared.holders(), 1);
        }
    }
}
