//! All near ends of a frontend: the way from its sessions to shards in other processes.

use crate::base::ids::{Caller, JobId, SessionId, ShardId, ShardSet};
use crate::base::time::Nanos;
use crate::channel::Terms;
use crate::channel::near::{Heard, NearEnd};
use crate::engine::host::{Outbox, Ticket};
use crate::engine::op::Op;
use crate::session::shards::{Reach, ShardMap, Shards};
use crate::session::table::Sessions;
use crate::wire::event;
use crate::wire::frame::Frame;
use crate::wire::refusal::{Refusal, Refusals};

/// See the module's description.
#[derive(Debug)]
pub struct RemoteShards {
    ends: Vec<NearEnd>,
    refusals: Refusals,
}

impl RemoteShards {
    /// No links yet, to any of the shards of `map`.
    #[must_use]
    pub fn new(map: ShardMap) -> RemoteShards {
        RemoteShards {
            ends: map.all().iter().map(NearEnd::new).collect(),
            refusals: Refusals::default(),
        }
    }

    /// The end of the link to this shard.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn end(&mut self, shard: ShardId) -> &mut NearEnd {
        &mut self.ends[usize::from(shard.0)]
    }

    /// Links that can be asked.
    #[must_use]
    pub fn up_count(&self) -> usize {
        self.ends.iter().filter(|end| end.is_up()).count()
    }

    /// How often what owners sent was refused.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }
}

impl Shards for RemoteShards {
    fn attach(&mut self, shard: ShardId, session: SessionId) {
        self.end(shard).attach(session);
    }

    fn submit(&mut self, _: Nanos, shard: ShardId, from: Caller, op: Op<'_>, _: &mut impl Outbox) {
        self.end(shard).submit(from, &op);
    }

    fn detach(&mut self, _: Nanos, shard: ShardId, session: SessionId, _: &mut impl Outbox) {
        self.end(shard).detach(session);
    }

    fn flush(&mut self) -> Ticket {
        // An owner says nothing that does not count.
        Ticket::default()
    }

    fn take_id(&mut self, _: ShardId, _: SessionId) -> Option<JobId> {
        None
    }

    fn reach(&self, shards: ShardSet) -> Reach {
        let mut reach = Reach::Now;
        for shard in shards.iter() {
            match self.ends[usize::from(shard.0)].reach() {
                Reach::Now => {}
                full @ Reach::Full(_) => reach = full,
                // It may take longer than any other.
                down @ Reach::Down(_) => return down,
            }
        }
        reach
    }
}

/// There is a link to the shard: see [`NearEnd::connect`]. Sessions hear of it when its owner has
/// said who it is.
pub fn connect(sessions: &mut Sessions<RemoteShards>, now: Nanos, shard: ShardId, terms: &Terms) {
    lose(sessions, now, shard);
    sessions.shards.end(shard).connect(terms);
}

/// The link to the shard is lost.
pub fn lose(sessions: &mut Sessions<RemoteShards>, now: Nanos, shard: ShardId) {
    if sessions.shards.end(shard).lose() {
        sessions.lose(now, shard);
    }
}

/// Has the sessions hear what the shard's owner has sent.
///
/// # Errors
/// What is wrong with it: the link is to be given up, and the owner to be told. `None` if it says
/// itself that it goes.
pub fn hear(
    sessions: &mut Sessions<RemoteShards>,
    now: Nanos,
    shard: ShardId,
    frame: Frame<'_>,
) -> Result<(), Option<Refusal>> {
    let heard = sessions.shards.end(shard).take(frame);
    match heard.and_then(|heard| deal_with(sessions, now, shard, heard)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(None),
        Err(refusal) => {
            sessions.shards.refusals.count(refusal);
            Err(Some(refusal))
        }
    }
}

/// Whether the link goes on.
fn deal_with(
    sessions: &mut Sessions<RemoteShards>,
    now: Nanos,
    shard: ShardId,
    heard: Heard<'_>,
) -> Result<bool, Refusal> {
    match heard {
        Heard::Greeting => sessions.regain(now, shard),
        Heard::Event { to, kind, message } => {
            if kind.has_body() && message.body.is_none() {
                // There is no memory for what it is owed.
                sessions.disown(to.session);
            } else {
                let event = event::decode(kind, &message.meta, message.body)?;
                sessions.hear(now, shard, to, event);
            }
        }
        Heard::Credit { asks } => sessions.resume(now, shard, asks as usize),
        Heard::Refused { session, why: _ } => sessions.disown(session),
        Heard::Goodbye(_) => return Ok(false),
        Heard::Nothing => {}
    }
    Ok(true)
}
