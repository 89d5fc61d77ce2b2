//! The links of a process to its peers: sockets, what the poller is asked about them, and the way
//! of frames through them. What frames mean is said by whoever takes them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::base::limits::{LINK_BACKLOG_BYTES_MAX, LINK_PARTS_BYTES_MAX};
use crate::channel::Terms;
use crate::net::link::{FrameError, Link, LinkError, LinkLimits, LinkRead};
use crate::net::stream::Stream;
use crate::session::shards::ShardMap;
use crate::sys::poller::{Interest, Poller};
use crate::wire::control::Hello;
use crate::wire::frame::Frame;
use crate::wire::header::{Ends, Expected, Header};
use crate::wire::refusal::Refusal;
use crate::wire::setup::{Peer, Setup};

/// See the module's description.
pub(super) struct Links {
    /// By the index of the peer.
    places: Vec<Option<Place>>,
    /// What the poller calls the first of them.
    first_key: usize,
}

struct Place {
    link: Link,
    interest: Interest,
    /// It is read. Not while the peer is too slow for what it is told.
    is_read: bool,
    /// Whoever writes has more than there was room for.
    has_more: bool,
}

/// Why a link is given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    /// The peer has ended, or has ended the link.
    #[error("the peer has ended it")]
    Ended,
    /// The peer has sent what it may not send.
    #[error("the peer is at fault")]
    Refused(#[source] Refusal),
    /// The system has.
    #[error(transparent)]
    Broken(#[from] LinkError),
}

impl Links {
    /// No links yet, to `count` peers.
    pub(super) fn new(count: usize, first_key: usize) -> Links {
        Links {
            places: std::iter::repeat_with(|| None).take(count).collect(),
            first_key,
        }
    }

    /// The peer that the poller calls `key`.
    pub(super) fn index_of(&self, key: usize) -> Option<usize> {
        let index = key.checked_sub(self.first_key)?;
        (index < self.places.len()).then_some(index)
    }

    /// There is a link to this peer. One that there was before has been closed.
    pub(super) fn open(&mut self, index: usize, fd: OwnedFd, poller: &Poller) -> io::Result<()> {
        let stream = Stream::try_from(fd)?;
        let interest = Interest::READ;
        poller.watch(stream.as_fd(), self.first_key + index, interest)?;
        self.places[index] = Some(Place {
            link: Link::new(stream, LinkLimits::default()),
            interest,
            is_read: true,
            has_more: false,
        });
        Ok(())
    }

    /// Closes the link to this peer, if there is one.
    pub(super) fn close(&mut self, index: usize, poller: &Poller) {
        if let Some(place) = self.places[index].take()
            && let Err(error) = poller.forget(place.link.as_fd())
        {
            log::warn!("cannot forget link error={error}");
        }
    }

    /// Reads what the peer has sent, and has each frame taken. `take` tells whether to go on with
    /// the next, else those that are there stay for another time. It tells too if a frame costs
    /// the link: with what the peer is told, or none if the peer says itself that it goes.
    pub(super) fn read(
        &mut self,
        index: usize,
        expected: &Expected,
        mut take: impl FnMut(Frame<'_>) -> Result<bool, Option<Refusal>>,
    ) -> Result<(), Lost> {
        let Some(place) = &mut self.places[index] else {
            return Ok(());
        };
        // Of a link that breaks what has come before is still worth having.
        let read = place.link.read();
        let (incoming, _) = place.link.halves();
        loop {
            let mut header = None;
            let next = incoming.next_frame(|bytes| {
                header = Frame::head(bytes, expected)?;
                Ok(header.as_ref().map(Header::frame_len))
            });
            let taken = match next.map(|bytes| header.zip(bytes)) {
                Ok(Some((header, bytes))) => Frame::of(header, bytes).map_or(Ok(true), &mut take),
                Ok(None) => break,
                Err(FrameError::Unreadable { source }) => Err(Some(source)),
                Err(FrameError::Length { .. }) => Err(Some(Refusal::PartLength)),
            };
            if !taken.map_err(|why| why.map_or(Lost::Ended, Lost::Refused))? {
                return Ok(());
            }
        }
        match read? {
            LinkRead::End => Err(Lost::Ended),
            LinkRead::Bytes(_) | LinkRead::Nothing | LinkRead::Full => Ok(()),
        }
    }

    /// Has `write` append what is to go to the peer, of large bodies as much as there is so much
    /// room for in bytes, and writes as much as the socket takes. `write` tells whether there is
    /// more.
    pub(super) fn write(
        &mut self,
        index: usize,
        poller: &Poller,
        write: impl FnOnce(&mut Vec<u8>, usize) -> bool,
    ) -> Result<(), Lost> {
        let Some(place) = &mut self.places[index] else {
            return Ok(());
        };
        let outgoing = place.link.outgoing();
        let room = LINK_PARTS_BYTES_MAX.saturating_sub(outgoing.len());
        place.has_more = write(outgoing.bytes(), room);
        place.link.flush()?;
        self.update_interest(index, poller);
        Ok(())
    }

    /// Whether the peer is too slow for what it is told.
    pub(super) fn is_over_limit(&mut self, index: usize) -> bool {
        let place = self.places[index].as_mut();
        place.is_some_and(|place| place.link.outgoing().is_over_limit())
    }

    /// Whether the peer has taken most of what it is told.
    pub(super) fn has_drained(&mut self, index: usize) -> bool {
        let place = self.places[index].as_mut();
        place.is_some_and(|place| place.link.outgoing().room() >= LINK_BACKLOG_BYTES_MAX / 2)
    }

    /// Has the peer read or not. Whether that is a change.
    pub(super) fn set_read(&mut self, index: usize, is_read: bool, poller: &Poller) -> bool {
        let Some(place) = &mut self.places[index] else {
            return false;
        };
        if place.is_read == is_read {
            return false;
        }
        place.is_read = is_read;
        self.update_interest(index, poller);
        true
    }

    fn update_interest(&mut self, index: usize, poller: &Poller) {
        let Some(place) = &mut self.places[index] else {
            return;
        };
        let mut wanted = place.link.interest(place.is_read);
        wanted.writable |= place.has_more;
        if wanted == place.interest {
            return;
        }
        let key = self.first_key + index;
        match poller.change(place.link.as_fd(), key, wanted) {
            Ok(()) => place.interest = wanted,
            Err(error) => log::error!("cannot watch link error={error}"),
        }
    }
}

/// What is agreed on with this peer.
pub(super) fn terms(setup: &Setup, peer: Peer) -> Terms {
    let ends = Ends {
        topology: ShardMap::new(setup.owners.into()).fingerprint(),
        sender: setup.generation,
        receiver: peer.generation,
    };
    let own = Hello::new(setup.run, ends, setup.role, setup.index);
    let awaited = Hello::new(setup.run, ends.reversed(), peer.role, peer.index);
    Terms::new(own, awaited, setup.body_len_max)
}
