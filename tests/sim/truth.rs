//! What is so, from what engines are asked and say at the moment they say it: which jobs there are,
//! who holds each and to whom it is offered. It sees that no job is given to two, and that none is
//! given back by somebody who does not have it.

use std::collections::{BTreeMap, BTreeSet};

use beanshard::base::body::Body;
use beanshard::base::ids::{Caller, JobId, SessionId, ShardId};
use beanshard::base::limits::OFFER_SECS_MAX;
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::op::Op;

use crate::link::Ask;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Truth {
    /// Jobs that were put and not deleted.
    pub(crate) jobs: BTreeMap<JobId, Known>,
    pub(crate) deleted: BTreeSet<JobId>,
    /// What every job carries that there ever was.
    pub(crate) bodies: BTreeMap<JobId, Body>,
    /// Reservations that ran out.
    pub(crate) timeouts: u64,
    /// How often what happened.
    pub(crate) seen: Seen,
    /// The put that an engine is about to obey.
    putting: Option<(Nanos, Body)>,
}

/// How often something happened that a run is about.
pub(crate) type Seen = BTreeMap<&'static str, u64>;

/// A job.
pub(crate) struct Known {
    pub(crate) shard: ShardId,
    pub(crate) created_at: Nanos,
    pub(crate) holder: Option<SessionId>,
    pub(crate) offer: Option<Offer>,
}

/// To which ask of whom a job is offered, and when that ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    to: Caller,
    until: Nanos,
}

impl Truth {
    /// Takes note of what ends with an ask without an event that says so.
    pub(crate) fn before_ask(&mut self, shard: ShardId, ask: &Ask) {
        match ask {
            Ask::Detach(session) => {
                for job in self.at(shard) {
                    job.holder = job.holder.filter(|holder| holder != session);
                    job.offer = job.offer.filter(|offer| offer.to.session != *session);
                }
            }
            Ask::Submit(from, Op::Decline { id }) => {
                self.see("decline");
                if let Some(job) = self.jobs.get_mut(id) {
                    // The offer to an earlier ask has ended by itself.
                    job.offer = job.offer.filter(|offer| offer.to != *from);
                }
            }
            Ask::Submit(_, Op::Put(put)) => {
                self.putting = Some((put.created_at, put.body.clone()));
            }
            Ask::Submit(..) | Ask::Attach(_) => {}
        }
    }

    /// Takes note of what an engine says.
    pub(crate) fn on_event(&mut self, shard: ShardId, now: Nanos, to: Caller, event: &Event<'_>) {
        let (caller, to) = (to, to.session);
        self.see(name_of(event));
        match *event {
            Event::Inserted { id } => self.insert(shard, id),
            Event::Reserved { id, .. } => {
                let job = self.free(id, now, to, true);
                job.holder = Some(to);
                job.offer = None;
            }
            Event::Offered { id, .. } => {
                let until = now.after(Secs(OFFER_SECS_MAX));
                let offer = Offer { to: caller, until };
                self.free(id, now, to, false).offer = Some(offer);
            }
            Event::Expired { id } => {
                self.give_back(id, to);
                self.timeouts += 1;
            }
            Event::Released { id } | Event::Buried { id } => self.give_back(id, to),
            Event::Touched { id, .. } => assert_eq!(self.jobs[&id].holder, Some(to)),
            Event::Deleted { id } => {
                let job = self.jobs.remove(&id).expect("what is deleted was there");
                let may = job.holder.is_none_or(|holder| holder == to);
                assert!(may, "{id:?} was deleted while another had it");
                self.deleted.insert(id);
            }
            _ => {}
        }
    }

    /// The job that is offered to the session by the shard, and to which of its asks.
    pub(crate) fn offered(&mut self, shard: ShardId, to: SessionId) -> Option<(Caller, JobId)> {
        let offered = |(&id, known): (&JobId, &Known)| {
            let offer = known.offer.filter(|offer| offer.to.session == to)?;
            (known.shard == shard).then_some((offer.to, id))
        };
        let found = self.jobs.iter().find_map(offered)?;
        self.see("reserve while offered");
        Some(found)
    }

    /// Offers that end by themselves have ended.
    pub(crate) fn end_offers(&mut self, shard: ShardId, now: Nanos) {
        for job in self.at(shard) {
            job.offer = job.offer.filter(|offer| offer.until > now);
        }
    }

    pub(crate) fn see(&mut self, what: &'static str) {
        self.see_often(what, 1);
    }

    pub(crate) fn see_often(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.seen.entry(what).or_default() += times;
        }
    }

    fn at(&mut self, shard: ShardId) -> impl Iterator<Item = &mut Known> {
        self.jobs.values_mut().filter(move |job| job.shard == shard)
    }

    fn insert(&mut self, shard: ShardId, id: JobId) {
        let (created_at, body) = self.putting.take().expect("a put was asked for");
        let known = Known {
            shard,
            created_at,
            holder: None,
            offer: None,
        };
        assert!(self.bodies.insert(id, body).is_none(), "{id:?} came twice");
        self.jobs.insert(id, known);
    }

    /// The job, which nobody but `to` may have been promised.
    fn free(&mut self, id: JobId, now: Nanos, to: SessionId, accepted: bool) -> &mut Known {
        let job = self.jobs.get_mut(&id).expect("what is given is there");
        assert_eq!(job.holder, None, "{id:?} is given while somebody holds it");
        let free = job
            .offer
            .is_none_or(|offer| offer.until <= now || (accepted && offer.to.session == to));
        assert!(free, "{id:?} is given while it is offered: {:?}", job.offer);
        job
    }

    fn give_back(&mut self, id: JobId, from: SessionId) {
        let job = self.jobs.get_mut(&id).expect("what comes back is there");
        assert_eq!(job.holder, Some(from), "{id:?} comes back from its holder");
        job.holder = None;
    }
}

fn name_of(event: &Event<'_>) -> &'static str {
    match event {
        Event::Offered { .. } => "offered",
        Event::Reserved { .. } => "reserved",
        Event::Gone => "gone",
        Event::NoJob => "no job",
        Event::Cancelled => "cancelled",
        Event::Expired { .. } => "expired",
        Event::Inserted { .. } => "inserted",
        Event::Deleted { .. } => "deleted",
        _ => "other",
    }
}
