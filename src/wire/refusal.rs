//! Why what came over a link is not obeyed. Everything here is found before anything is changed.

use thiserror::Error;

/// Metadata that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// It ends too early.
    #[error("ends in the middle of a field")]
    Short,
    /// It goes on after its last field.
    #[error("goes on after the last field")]
    Long,
    /// A field has a value that it cannot have.
    #[error("a field has a value that it cannot have")]
    Value,
}

/// Numbers for ever: never reuse, never renumber. From the table come the number of each refusal,
/// the way back, and the list of all.
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a frame was refused, in the order in which frames are checked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
        pub enum Refusal {
            $($(#[$doc])* #[error($text)] $name,)*
        }

        impl Refusal {
            /// All of them.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$name),*];

            /// Its number on the wire.
            #[must_use]
            pub fn number(self) -> u8 {
                match self {
                    $(Refusal::$name => $number,)*
                }
            }

            /// The refusal with this number.
            #[must_use]
            pub fn of_number(number: u8) -> Option<Refusal> {
                match number {
                    $($number => Some(Refusal::$name),)*
                    _ => None,
                }
            }
        }
    };
}

refusals! {
    /// It does not begin as a frame does: whoever sent it speaks something else, or lost count.
    Magic = 1, "no frame begins like this";
    /// The peer is of another version of this program.
    Version = 2, "another version of the wire";
    /// A hello of another supervisor's run.
    Run = 3, "another run of the supervisor";
    /// The peer has another idea of which shard has what.
    Topology = 4, "another topology";
    /// It is from a process that is not the one at the other end.
    Sender = 5, "another generation of the sender";
    /// It is for a process that was here before.
    Receiver = 6, "another generation of the receiver";
    /// A hello of a process of another role or with another index than was expected.
    Peer = 7, "another peer than was expected";
    /// No kind has this number, or not one that the peer may send.
    Kind = 8, "a kind that is not known or not the peer's to send";
    /// A flag that has no meaning, or not with this kind.
    Flags = 9, "flags without a meaning";
    /// More metadata than is allowed.
    MetaLength = 10, "more metadata than is allowed";
    /// A body that is longer than is allowed, or where there can be none.
    BodyLength = 11, "a body that is too long or has no place";
    /// The part of a body is longer than a part may be, longer than the body, or empty.
    PartLength = 12, "a part of a body with a wrong length";
    /// The session is not attached.
    Session = 13, "a session that is not attached";
    /// The session has been detached before, or a younger one has.
    LateAttach = 14, "an attach that comes after the detach";
    /// The request's id is not greater than the one before it.
    Request = 15, "a request out of order";
    /// The part does not continue what came before of its session.
    Order = 16, "a part of a body out of order";
    /// Bodies of more bytes have begun than may be under way.
    Budget = 17, "more bodies under way than is allowed";
    /// More is asked than there is credit for.
    Credit = 18, "more than there is credit for";
    /// The metadata says nothing.
    Meta = 19, "metadata that says nothing";
}

impl From<DecodeError> for Refusal {
    fn from(_: DecodeError) -> Refusal {
        Refusal::Meta
    }
}

impl Refusal {
    /// Whether the peer is at fault, so that nothing more that it sends can be trusted. The others
    /// come of a session's end that is on its way, and concern that session alone.
    #[must_use]
    pub fn costs_link(self) -> bool {
        !matches!(self, Refusal::Session | Refusal::LateAttach)
    }
}

/// How often each refusal happened.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    counts: [u64; Refusal::ALL.len()],
}

impl Refusals {
    /// It happened.
    pub fn count(&mut self, refusal: Refusal) {
        self.counts[refusal as usize] += 1;
    }

    /// How often it happened.
    #[must_use]
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.counts[refusal as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R3.2
    #[test]
    fn numbers_are_pinned_and_lead_back() {
        let numbers: Vec<u8> = Refusal::ALL.iter().map(|one| one.number()).collect();
        assert_eq!(numbers, (1..=19).collect::<Vec<u8>>());
        for number in 0..=u8::MAX {
            let refusal = Refusal::of_number(number);
            assert_eq!(
                refusal.map(Refusal::number),
                numbers.contains(&number).then_some(number)
            );
        }
        assert_eq!(Refusal::Version.number(), 2);
        assert_eq!(Refusal::Meta.number(), 19);
    }

    // A3.2
    #[test]
    fn each_refusal_has_its_own_counter() {
        let mut refusals = Refusals::default();
        for &refusal in Refusal::ALL {
            assert_eq!(refusals.of(refusal), 0);
            refusals.count(refusal);
            assert_eq!(refusals.of(refusal), 1);
        }
    }
}
