//! How an entry finds its place in a heap: the two moves that every operation is made of, for any
//! number of children and wherever the entries are kept. The engine's heaps and the one of the C
//! interface are both made of them.

/// The entries of a heap, each at its position. The parent of the entry at `n` is at
/// `(n - 1) / arity`.
pub trait Nodes {
    /// An entry.
    type Node: Copy;

    /// Number of entries.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at a position that there is.
    fn node(&self, at: usize) -> Self::Node;

    /// Puts an entry at a position that there is, and tells its owner where it is now.
    fn put(&mut self, at: usize, node: Self::Node);

    /// Whether `one` has to come before `other`.
    fn precedes(&self, one: &Self::Node, other: &Self::Node) -> bool;
}

/// Finds the place of the entry at `at`, which may be wrong there in either direction.
#[inline]
pub fn settle(nodes: &mut impl Nodes, arity: usize, at: usize) {
    let rises = at > 0 && nodes.precedes(&nodes.node(at), &nodes.node((at - 1) / arity));
    if rises {
        rise(nodes, arity, at);
    } else {
        sink(nodes, arity, at);
    }
}

/// Moves the entry at `at` up as long as it has to come before its parent.
#[inline]
pub fn rise(nodes: &mut impl Nodes, arity: usize, mut at: usize) {
    let entry = nodes.node(at);
    while at > 0 {
        let parent = (at - 1) / arity;
        let above = nodes.node(parent);
        if !nodes.precedes(&entry, &above) {
            break;
        }
        nodes.put(at, above);
        at = parent;
    }
    nodes.put(at, entry);
}

/// Moves the entry at `at` down as long as one of its children has to come before it.
#[inline]
pub fn sink(nodes: &mut impl Nodes, arity: usize, mut at: usize) {
    let entry = nodes.node(at);
    loop {
        let mut child = arity * at + 1;
        if child >= nodes.len() {
            break;
        }
        let mut least = nodes.node(child);
        for other in child + 1..(child + arity).min(nodes.len()) {
            let node = nodes.node(other);
            if nodes.precedes(&node, &least) {
                (child, least) = (other, node);
            }
        }
        if !nodes.precedes(&least, &entry) {
            break;
        }
        nodes.put(at, least);
        at = child;
    }
    nodes.put(at, entry);
}
