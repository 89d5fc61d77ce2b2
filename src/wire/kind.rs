//! What a frame is: one number for each ask, each event, and each thing that processes say to each
//! other themselves.

/// Who sends a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The process that starts the others.
    Supervisor,
    /// A process that has clients.
    Frontend,
    /// A process that has jobs.
    Owner,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something between processes.
    Control(ControlKind),
    /// A session's ask.
    Op(OpKind),
    /// An answer or an announcement to a session.
    Event(EventKind),
}

/// Makes an enum of names with fixed numbers, the way there and the way back. The numbers are for
/// ever: never reuse, never renumber.
macro_rules! numbered {
    ($(#[$doc:meta])* $kinds:ident { $($name:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is named as what it carries")]
        pub enum $kinds {
            $($name,)*
        }

        impl $kinds {
            /// All of them.
            pub const ALL: &'static [$kinds] = &[$($kinds::$name),*];

            /// Its number on the wire.
            #[must_use]
            pub fn number(self) -> u16 {
                match self {
                    $($kinds::$name => $number,)*
                }
            }

            /// The kind with this number.
            #[must_use]
            pub fn of_number(number: u16) -> Option<$kinds> {
                match number {
                    $($number => Some($kinds::$name),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// Something between processes. Numbers below 32.
    ControlKind {
        Hello = 1,
        Goodbye = 2,
        Ping = 3,
        Pong = 4,
        Credit = 5,
        Refused = 6,
        Drain = 7,
        AskCounts = 8,
        Counts = 9,
        Setup = 10,
        Ready = 11,
        Link = 12,
        LinkLost = 13,
        Attach = 16,
        Detach = 17,
    }
}

numbered! {
    /// A case of [`Op`](crate::engine::op::Op). Numbers from 32 to 127.
    OpKind {
        Use = 32,
        Unuse = 33,
        Watch = 34,
        Ignore = 35,
        Put = 36,
        Reserve = 37,
        Accept = 38,
        Decline = 39,
        Cancel = 40,
        ReserveJob = 41,
        Delete = 42,
        Release = 43,
        Bury = 44,
        Touch = 45,
        Kick = 46,
        KickJob = 47,
        Peek = 48,
        PeekReady = 49,
        PeekDelayed = 50,
        PeekBuried = 51,
        PauseTube = 52,
        StatsJob = 53,
        StatsTube = 54,
        Stats = 55,
        ListTubes = 56,
    }
}

numbered! {
    /// A case of [`Event`](crate::engine::event::Event). Numbers from 128.
    EventKind {
        Using = 128,
        Watching = 129,
        Ignored = 130,
        Inserted = 131,
        Draining = 132,
        OutOfMemory = 133,
        Reserved = 134,
        NoJob = 135,
        Offered = 136,
        Gone = 137,
        Cancelled = 138,
        Expired = 139,
        Deleted = 140,
        Released = 141,
        Buried = 142,
        Touched = 143,
        Kicked = 144,
        KickedJob = 145,
        Found = 146,
        NotFound = 147,
        Paused = 148,
        JobStats = 149,
        TubeStats = 150,
        ShardStats = 151,
        Tube = 152,
        TubesEnd = 153,
    }
}

impl EventKind {
    /// Whether it carries a job's body, if only one of 0 bytes.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, EventKind::Reserved | EventKind::Found)
    }
}

impl OpKind {
    /// Whether it carries a job's body, if only one of 0 bytes.
    #[must_use]
    pub fn has_body(self) -> bool {
        self == OpKind::Put
    }

    /// Whether it goes on with an earlier request of its session, whose id it carries.
    #[must_use]
    pub fn refers_back(self) -> bool {
        matches!(self, OpKind::Accept | OpKind::Decline | OpKind::Cancel)
    }

    /// Whether a session may be introduced by it, before its first request and without an id.
    #[must_use]
    pub fn introduces(self) -> bool {
        matches!(self, OpKind::Use | OpKind::Watch)
    }
}

impl Kind {
    /// Its number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Kind::Control(kind) => kind.number(),
            Kind::Op(kind) => kind.number(),
            Kind::Event(kind) => kind.number(),
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn of_number(number: u16) -> Option<Kind> {
        let control = ControlKind::of_number(number).map(Kind::Control);
        let op = || OpKind::of_number(number).map(Kind::Op);
        let event = || EventKind::of_number(number).map(Kind::Event);
        control.or_else(op).or_else(event)
    }

    /// Whether it carries a job's body, if only one of 0 bytes.
    #[must_use]
    pub fn has_body(self) -> bool {
        match self {
            Kind::Control(_) => false,
            Kind::Op(kind) => kind.has_body(),
            Kind::Event(kind) => kind.has_body(),
        }
    }

    /// Whether `sender` may send it.
    #[must_use]
    pub fn is_from(self, sender: Sender) -> bool {
        match self {
            Kind::Op(_) => sender == Sender::Frontend,
            Kind::Event(_) => sender == Sender::Owner,
            Kind::Control(kind) => match kind {
                ControlKind::Attach | ControlKind::Detach | ControlKind::LinkLost => {
                    sender == Sender::Frontend
                }
                ControlKind::Credit | ControlKind::Refused => sender == Sender::Owner,
                ControlKind::Drain | ControlKind::Setup | ControlKind::Link => {
                    sender == Sender::Supervisor
                }
                ControlKind::Ready => sender != Sender::Supervisor,
                ControlKind::Hello
                | ControlKind::Goodbye
                | ControlKind::Ping
                | ControlKind::Pong
                | ControlKind::AskCounts
                | ControlKind::Counts => true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R3.2
    #[test]
    fn numbers_are_pinned_and_lead_back() {
        let known: Vec<u16> = (1..=13)
            .chain(16..=17)
            .chain(32..=56)
            .chain(128..=153)
            .collect();
        for number in 0..=u16::MAX {
            let kind = Kind::of_number(number);
            let is_known = known.contains(&number);
            assert_eq!(kind.map(Kind::number), is_known.then_some(number));
        }
        for (kind, number) in [
            (Kind::Control(ControlKind::Hello), 1),
            (Kind::Control(ControlKind::Counts), 9),
            (Kind::Control(ControlKind::Setup), 10),
            (Kind::Control(ControlKind::Ready), 11),
            (Kind::Control(ControlKind::Link), 12),
            (Kind::Control(ControlKind::LinkLost), 13),
            (Kind::Control(ControlKind::Detach), 17),
            (Kind::Op(OpKind::Put), 36),
            (Kind::Op(OpKind::ReserveJob), 41),
            (Kind::Op(OpKind::ListTubes), 56),
            (Kind::Event(EventKind::Reserved), 134),
            (Kind::Event(EventKind::Found), 146),
            (Kind::Event(EventKind::TubesEnd), 153),
        ] {
            assert_eq!(kind.number(), number);
        }
    }

    #[test]
    fn asks_come_from_frontends_and_events_from_owners() {
        let may = |kind: Kind| {
            [Sender::Supervisor, Sender::Frontend, Sender::Owner].map(|from| kind.is_from(from))
        };
        assert_eq!(may(Kind::Op(OpKind::Put)), [false, true, false]);
        assert_eq!(
            may(Kind::Control(ControlKind::Detach)),
            [false, true, false]
        );
        let told = |kind| may(Kind::Control(kind));
        assert_eq!(told(ControlKind::Setup), [true, false, false]);
        assert_eq!(told(ControlKind::Link), [true, false, false]);
        assert_eq!(told(ControlKind::LinkLost), [false, true, false]);
        assert_eq!(told(ControlKind::Ready), [false, true, true]);
        assert_eq!(may(Kind::Event(EventKind::NoJob)), [false, false, true]);
        assert_eq!(may(Kind::Control(ControlKind::Ping)), [true, true, true]);
    }
}
