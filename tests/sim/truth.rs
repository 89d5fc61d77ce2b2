//! What is so, from what shards are asked and say at the moment they do: which jobs there are, who
//! holds each and to whom it is offered. It sees that no job is given to two, that none is given
//! back by somebody who does not have it, and that nothing is done twice.

use std::collections::{BTreeMap, BTreeSet};

use beanshard::base::body::Body;
use beanshard::base::ids::{Caller, Generation, JobId, Seq, SessionId, ShardId};
use beanshard::base::limits::OFFER_SECS_MAX;
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::op::Op;

use crate::account::Account;
use crate::ledger::{Found, Shown};

/// See the module's description.
#[derive(Default)]
pub(crate) struct Truth {
    /// Jobs that were put and not deleted, and whose owner has not crashed since.
    pub(crate) jobs: BTreeMap<JobId, Known>,
    pub(crate) deleted: BTreeSet<JobId>,
    /// What every job carries that there ever was.
    pub(crate) bodies: BTreeMap<JobId, Body>,
    /// Which job came of which put, by the number in its body.
    put: BTreeMap<Vec<u8>, JobId>,
    /// Reservations that ran out, and jobs that were put, since each shard began.
    pub(crate) timeouts: BTreeMap<ShardId, u64>,
    pub(crate) puts: BTreeMap<ShardId, u64>,
    /// What clients have said, those that are gone included.
    pub(crate) accounts: BTreeMap<Who, Account>,
    /// Sessions that each shard knows.
    pub(crate) attached: BTreeSet<(ShardId, Who)>,
    /// Sessions that each link has said are gone, and links that sessions were attached over.
    detached: BTreeSet<(u64, Who)>,
    introduced: BTreeMap<(ShardId, Who), u64>,
    /// The latest request of each session over each link.
    latest: BTreeMap<(u64, Who), Seq>,
    /// How often what happened.
    pub(crate) seen: Seen,
    /// The put that a shard is about to obey.
    putting: Option<(Nanos, Body)>,
}

/// How often something happened that a run is about.
pub(crate) type Seen = BTreeMap<&'static str, u64>;

/// A session: a frontend that was started anew counts its sessions anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    /// Of the frontend.
    pub(crate) generation: Generation,
    pub(crate) session: SessionId,
}

/// A job.
pub(crate) struct Known {
    pub(crate) shard: ShardId,
    pub(crate) created_at: Nanos,
    pub(crate) holder: Option<Who>,
    pub(crate) offer: Option<Offer>,
}

/// To which ask of whom a job is offered, and when that ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) to: Who,
    seq: Seq,
    until: Nanos,
}

/// Sessions.
impl Truth {
    /// A session is made known to a shard over a link.
    pub(crate) fn attach(&mut self, shard: ShardId, link: u64, who: Who) {
        assert!(
            !self.detached.contains(&(link, who)),
            "{who:?} is attached to {shard:?} after it was detached"
        );
        assert!(
            self.attached.insert((shard, who)),
            "{who:?} is attached to {shard:?} twice"
        );
        let before = self.introduced.insert((shard, who), link);
        if before.is_some_and(|before| before != link) {
            self.see("introduced anew");
        }
    }

    /// A shard is told to forget a session.
    pub(crate) fn detach(&mut self, shard: ShardId, link: u64, who: Who) {
        assert!(
            self.attached.remove(&(shard, who)),
            "{who:?} is detached from {shard:?}, which does not know it"
        );
        self.detached.insert((link, who));
        for job in self.at(shard) {
            job.holder = job.holder.filter(|holder| *holder != who);
            job.offer = job.offer.filter(|offer| offer.to != who);
        }
    }

    /// The owner of a shard ends, with all that it had.
    pub(crate) fn crash(&mut self, shard: ShardId) {
        self.jobs.retain(|_, job| job.shard != shard);
        self.attached.retain(|(at, _)| *at != shard);
        self.timeouts.remove(&shard);
        self.puts.remove(&shard);
    }
}

/// Jobs.
impl Truth {
    /// The owner of a shard begins anew with what it has found. Ids behind those that it knows of
    /// may be given again.
    pub(crate) fn come_back(
        &mut self,
        shard: ShardId,
        found: &Found,
        is_of_shard: impl Fn(JobId) -> bool,
    ) {
        let is_known = |id: JobId| id <= found.highest || !is_of_shard(id);
        self.bodies.retain(|&id, _| is_known(id));
        self.deleted.retain(|&id| is_known(id) && !found.has(id));
        for &(id, shown) in &found.jobs {
            let Shown::Job { created_at, .. } = shown else {
                continue;
            };
            let known = Known {
                shard,
                created_at,
                holder: None,
                offer: None,
            };
            self.jobs.insert(id, known);
        }
    }

    /// Takes note of what is asked, and of what ends with it without an event that says so.
    pub(crate) fn before_ask(
        &mut self,
        (shard, link): (ShardId, u64),
        (who, seq): (Who, Seq),
        op: &Op<'_>,
    ) {
        assert!(
            self.attached.contains(&(shard, who)),
            "{who:?} asks {op:?} of {shard:?}, which does not know it"
        );
        let introduces = matches!(op, Op::Use { .. } | Op::Watch { .. }) && seq == Seq::NONE;
        let goes_on = matches!(op, Op::Accept { .. } | Op::Decline { .. } | Op::Cancel);
        let latest = self.latest.entry((link, who)).or_default();
        let is_new = seq > *latest || (introduces && *latest == Seq::NONE);
        assert!(is_new || goes_on, "{who:?} asks {op:?} out of order");
        *latest = seq.max(*latest);
        match op {
            Op::Decline { id } => {
                self.see("decline");
                return self.end_offer(*id, who, Some(seq));
            }
            Op::Unuse | Op::Cancel | Op::Accept { .. } | Op::Stats | Op::ListTubes => return,
            Op::Put(put) => self.putting = Some((put.created_at, put.body.to_body())),
            Op::Reserve { .. } => self.replace_offer(shard, who),
            _ if introduces => return,
            _ => {}
        }
        let account = self.accounts.get_mut(&who);
        let account = account.expect("sessions belong to clients");
        assert!(account.ask(op), "{who:?} asks {op:?}: again, or unbidden");
    }

    /// A shard keeps one offer for a session. When the session reserves anew while its answer to
    /// the last offer is still on its way, that offer ends with the new ask.
    fn replace_offer(&mut self, shard: ShardId, who: Who) {
        let is_it =
            |job: &Known| job.shard == shard && job.offer.is_some_and(|offer| offer.to == who);
        let mut jobs = self.jobs.iter().filter(|(_, job)| is_it(job));
        if let Some((&id, _)) = jobs.next() {
            self.see("reserve while offered");
            self.end_offer(id, who, None);
        }
    }

    fn end_offer(&mut self, id: JobId, who: Who, seq: Option<Seq>) {
        if let Some(job) = self.jobs.get_mut(&id) {
            // The offer to an earlier ask has ended by itself.
            let is_it = |offer: &Offer| offer.to == who && seq.is_none_or(|seq| offer.seq == seq);
            job.offer = job.offer.filter(|offer| !is_it(offer));
        }
    }

    /// Takes note of what a shard says.
    pub(crate) fn on_event(
        &mut self,
        shard: ShardId,
        now: Nanos,
        (who, to): (Who, Caller),
        event: &Event<'_>,
    ) {
        self.see(name_of(event));
        match *event {
            Event::Inserted { id } => self.insert(shard, id),
            Event::Reserved { id, .. } => {
                let job = self.free(id, now, who, true);
                job.holder = Some(who);
                job.offer = None;
            }
            Event::Offered { id, .. } => {
                let until = now.after(Secs(OFFER_SECS_MAX));
                let offer = Offer {
                    to: who,
                    seq: to.seq,
                    until,
                };
                self.free(id, now, who, false).offer = Some(offer);
            }
            Event::Expired { id } => {
                self.give_back(id, who);
                *self.timeouts.entry(shard).or_default() += 1;
            }
            Event::Released { id } | Event::Buried { id } => self.give_back(id, who),
            Event::Touched { id, .. } => assert_eq!(self.jobs[&id].holder, Some(who)),
            Event::Deleted { id } => {
                let job = self.jobs.remove(&id).expect("what is deleted was there");
                let may = job.holder.is_none_or(|holder| holder == who);
                assert!(may, "{id:?} was deleted while another had it");
                self.deleted.insert(id);
            }
            _ => {}
        }
    }

    /// Offers that end by themselves have ended.
    pub(crate) fn end_offers(&mut self, shard: ShardId, now: Nanos) {
        for job in self.at(shard) {
            job.offer = job.offer.filter(|offer| offer.until > now);
        }
    }

    pub(crate) fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
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
        let number = body.split(|&byte| byte == b'.').next();
        let earlier = self.put.insert(number.unwrap_or_default().to_vec(), id);
        assert_eq!(earlier, None, "{id:?} was put before");
        assert!(self.bodies.insert(id, body).is_none(), "{id:?} came twice");
        self.jobs.insert(id, known);
        *self.puts.entry(shard).or_default() += 1;
    }

    /// The job, which nobody but `to` may have been promised.
    fn free(&mut self, id: JobId, now: Nanos, to: Who, accepted: bool) -> &mut Known {
        let job = self.jobs.get_mut(&id).expect("what is given is there");
        assert_eq!(job.holder, None, "{id:?} is given while somebody holds it");
        let free = job
            .offer
            .is_none_or(|offer| offer.until <= now || (accepted && offer.to == to));
        assert!(free, "{id:?} is given while it is offered: {:?}", job.offer);
        job
    }

    fn give_back(&mut self, id: JobId, from: Who) {
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
