//! The names that tubes have here: from a fixed list, so that a copy of one is a reference to it.

use beanshard::base::name::TubeName;

/// Every name that a tube can have here. Any five shards have some of them each.
pub(crate) const NAMES: [&str; 27] = [
    "default", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
    "r", "s", "t", "u", "v", "w", "x", "y", "z",
];

/// `name` as a name that lives as long as is needed.
pub(crate) fn own_name(name: TubeName<'_>) -> TubeName<'static> {
    tube(text_of(name))
}

/// `name` as text.
pub(crate) fn text_of(name: TubeName<'_>) -> &'static str {
    let is_it = |known: &&str| known.as_bytes() == name.as_bytes();
    NAMES.into_iter().find(is_it).expect("all names are known")
}

pub(crate) fn tube(name: &str) -> TubeName<'_> {
    TubeName::parse(name.as_bytes()).expect("names are well-formed")
}
