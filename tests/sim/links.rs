//! What goes over links: ends write, bytes take their way in pieces, frames are cut and heard, and
//! either end may find that the other is gone.

use std::collections::BTreeSet;

use beanshard::base::ids::{Caller, JobId, SessionId, ShardId};
use beanshard::base::time::Nanos;
use beanshard::channel::remote;
use beanshard::engine::event::Event;
use beanshard::engine::host::Ticket;
use beanshard::engine::op::{Op, Style};
use beanshard::session::shards::Reach;
use beanshard::wire::frame::Frame;
use beanshard::wire::kind::{EventKind, Kind, OpKind};
use beanshard::wire::op;
use beanshard::wire::refusal::Refusal;

use crate::command::Command;
use crate::names::tube;
use crate::witness::caller;
use crate::world::{World, say};

/// From a frontend to an owner.
impl World {
    /// Lets a frontend write. Whether it had something to.
    pub(crate) fn say_up(&mut self, f: usize, o: usize, room: usize) -> bool {
        let frontend = &mut self.frontends[f];
        if !frontend.turns() {
            return false;
        }
        let Some(channel) = frontend.links[o].and_then(|link| self.channels.get_mut(&link)) else {
            return false;
        };
        if channel.up.is_full() {
            return false;
        }
        let end = frontend.table().shards.end(ShardId(o as u8));
        let start = channel.up.bytes.len();
        end.write(&mut channel.up.bytes, room);
        let has_said = channel.up.bytes.len() > start;
        if channel.up.is_dead || channel.up.is_closed {
            channel.up.bytes.truncate(start);
        } else {
            channel.keep(start);
        }
        has_said
    }

    /// Lets up to `most` bytes arrive at an owner, and has it take up to `frames` frames. Whether
    /// something has happened.
    pub(crate) fn deliver(&mut self, f: usize, o: usize, most: usize, frames: usize) -> bool {
        let owner = &self.owners[o];
        if !owner.turns() || owner.slow[f] {
            return false;
        }
        let Some(channel) = owner.links[f].and_then(|link| self.channels.get_mut(&link)) else {
            return false;
        };
        let mut moved = channel.up.carry(most);
        let bytes = std::mem::take(&mut channel.up.arrived);
        let mut rest = &bytes[..];
        for _ in 0..frames {
            match self.take_frame(f, o, &mut rest) {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(why) => {
                    self.refuse_near(f, o, why);
                    return true;
                }
            }
        }
        let channel = self.owners[o].links[f].and_then(|link| self.channels.get_mut(&link));
        let Some(channel) = channel else { return true };
        channel.up.arrived = rest.to_vec();
        if !moved && channel.up.has_ended() {
            self.lose_far(f, o);
            return true;
        }
        moved
    }

    /// Whether there was a whole frame.
    fn take_frame(
        &mut self,
        f: usize,
        o: usize,
        rest: &mut &[u8],
    ) -> Result<bool, Option<Refusal>> {
        let hub = self.owners[o].hub.as_mut().expect("the owner runs");
        let expected = hub.expected(f as u16).expect("there is a link");
        let cut = Frame::cut(rest, &expected);
        let Some(frame) = cut.map_err(Some)? else {
            return Ok(false);
        };
        let late = hub.refusals().of(Refusal::LateAttach);
        let strange = hub.refusals().of(Refusal::Session);
        hub.take(self.now, f as u16, frame)?;
        let mut truth = self.truth.borrow_mut();
        if hub.refusals().of(Refusal::LateAttach) > late {
            truth.see("late attach refused");
        }
        if hub.refusals().of(Refusal::Session) > strange {
            truth.see("unknown session refused");
        }
        drop(truth);
        self.check_reach(f, o, frame);
        Ok(true)
    }

    /// A reserve asks those shards that have a watched tube, and makes them compare offers only if
    /// they are several.
    fn check_reach(&self, f: usize, o: usize, frame: Frame<'_>) {
        if frame.header.kind != Kind::Op(OpKind::Reserve) {
            return;
        }
        let session = frame.header.caller(f as u16).session;
        let client = self.clients.iter().find(|client| client.id == session);
        let op = op::decode(OpKind::Reserve, frame.meta, None);
        // What the client watches is known once it has read all answers.
        if let (Some(client), Ok(Op::Reserve { style, .. })) = (client, op)
            && client.reserves()
            && !client.is_touched
        {
            let shards = client
                .watched
                .iter()
                .map(|name| self.map.of_tube(tube(name)));
            let shards: BTreeSet<usize> = shards.map(|shard| usize::from(shard.0)).collect();
            assert!(
                shards.contains(&o),
                "c{} watches at {shards:?}",
                client.number
            );
            assert_eq!(style == Style::Take, shards.len() == 1);
        }
    }

    /// An owner gives up a link over which something came that cannot be.
    fn refuse_near(&mut self, f: usize, o: usize, why: Option<Refusal>) {
        say!(self, "s{o} refuses what f{f} says: {why:?}");
        let owner = &mut self.owners[o];
        if let (Some(why), Some(hub), Some(link)) = (why, &mut owner.hub, owner.links[f])
            && let Some(channel) = self.channels.get_mut(&link)
        {
            self.truth.borrow_mut().see("link refused");
            hub.part(f as u16, Some(why));
            if !channel.down.is_dead && !channel.down.is_closed {
                let out = &mut channel.down.bytes;
                hub.write(f as u16, out, usize::MAX, Ticket::default());
            }
        }
        self.lose_far(f, o);
    }

    /// An owner has no link to a frontend any more.
    pub(crate) fn lose_far(&mut self, f: usize, o: usize) {
        let owner = &mut self.owners[o];
        let Some(link) = owner.links[f].take() else {
            return;
        };
        owner.slow[f] = false;
        if let Some(hub) = &mut owner.hub {
            hub.lose(self.now, f as u16);
        }
        if let Some(channel) = self.channels.get_mut(&link) {
            channel.leave_far();
        }
        say!(self, "s{o} loses f{f}");
        self.sweep();
    }
}

/// From an owner to a frontend.
impl World {
    /// Lets an owner write. Whether it had something to.
    pub(crate) fn say_down(&mut self, f: usize, o: usize, room: usize) -> bool {
        if !self.owners[o].turns() {
            return false;
        }
        let Some(link) = self.owners[o].links[f] else {
            return false;
        };
        if self.channels[&link].down.is_full() {
            return false;
        }
        let Some(confirmed) = self.end_turn(o) else {
            return true;
        };
        let (Some(channel), Some(hub)) = (self.channels.get_mut(&link), &mut self.owners[o].hub)
        else {
            return false;
        };
        let start = channel.down.bytes.len();
        hub.write(f as u16, &mut channel.down.bytes, room, confirmed);
        let has_said = channel.down.bytes.len() > start;
        if channel.down.is_dead || channel.down.is_closed {
            channel.down.bytes.truncate(start);
        } else if let Some(binlog) = &self.binlogs[o] {
            let mut hands_over = false;
            channel.tell_left(start, |who, seq, kind| {
                hands_over |= matches!(kind, EventKind::Reserved | EventKind::Found);
                binlog.on_left(who, seq, kind);
            });
            self.is_ominous |= hands_over && binlog.is_syncing();
        }
        self.stop_failed(o);
        has_said
    }

    /// Lets up to `most` bytes arrive at a frontend, and has it hear up to `frames` frames. Whether
    /// something has happened.
    pub(crate) fn hear(&mut self, f: usize, o: usize, most: usize, frames: usize) -> bool {
        let frontend = &self.frontends[f];
        if !frontend.turns() {
            return false;
        }
        let Some(channel) = frontend.links[o].and_then(|link| self.channels.get_mut(&link)) else {
            return false;
        };
        let mut moved = channel.down.carry(most);
        let bytes = std::mem::take(&mut channel.down.arrived);
        let mut rest = &bytes[..];
        for _ in 0..frames {
            match self.hear_frame(f, o, &mut rest) {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(why) => {
                    say!(self, "f{f} refuses what s{o} says: {why:?}");
                    self.lose_near(f, o);
                    return true;
                }
            }
        }
        let channel = self.frontends[f].links[o].and_then(|link| self.channels.get_mut(&link));
        let Some(channel) = channel else { return true };
        channel.down.arrived = rest.to_vec();
        if !moved && channel.down.has_ended() {
            self.lose_near(f, o);
            return true;
        }
        moved
    }

    fn hear_frame(
        &mut self,
        f: usize,
        o: usize,
        rest: &mut &[u8],
    ) -> Result<bool, Option<Refusal>> {
        let shard = ShardId(o as u8);
        let table = self.frontends[f].table();
        let expected = *table.shards.end(shard).expected().expect("there is a link");
        let Some(frame) = Frame::cut(rest, &expected).map_err(Some)? else {
            return Ok(false);
        };
        let link = self.frontends[f].links[o].expect("there is a link");
        // While an event is looked at, the world is, too.
        let mut channel = self.channels.remove(&link).expect("there is a link");
        channel.overhear(frame, |to, event| self.note(f, o, to, event));
        if std::mem::take(&mut channel.interleaved) > 0 {
            self.truth.borrow_mut().see("interleaved");
        }
        self.channels.insert(link, channel);
        if !matches!(frame.header.kind, Kind::Event(_)) {
            say!(self, "    f{f} <- s{o} {:?}", frame.header.kind);
        }
        let now = self.now;
        let frontend = &mut self.frontends[f];
        remote::hear(frontend.table(), now, shard, frame)?;
        let end = frontend.table().shards.end(shard);
        if end.is_up() && frontend.down_until[o] > now {
            frontend.down_until[o] = now;
        }
        self.look(f);
        Ok(true)
    }

    /// Takes note of what a session is about to hear, and sees that no job is handed to a client
    /// while another can still be sure of having it.
    fn note(&mut self, f: usize, o: usize, to: Caller, event: &Event<'_>) {
        let Some(index) = self.index_of(to.session) else {
            return;
        };
        if self.frontends[f].table().is_lost(to.session) {
            return;
        }
        if self.verbose {
            let said = format!("{event:?}");
            let said = &said[..said.len().min(70)];
            say!(self, "    {} hears s{o} {said}", caller(&to));
        }
        let holder = |id: JobId| self.truth.borrow().jobs.get(&id).and_then(|job| job.holder);
        // It may be old news: the job was given back since, and is another's.
        if let Event::Reserved { id, deadline, .. } = *event
            && deadline > self.now
            && holder(id) == Some(self.clients[index].who)
        {
            let mut others = self
                .clients
                .iter()
                .filter(|other| other.id != to.session && self.is_whole(other.frontend, o));
            let other = others.find(|other| other.surely_has(id, self.now));
            assert!(
                other.is_none(),
                "{id:?} is handed over while c{} has it",
                other.map_or(0, |other| other.number)
            );
        }
        self.clients[index].note(self.now, to.seq, event);
    }

    /// Whether both ends have the same link, and can speak.
    fn is_whole(&self, f: usize, o: usize) -> bool {
        let link = self.frontends[f].links[o];
        link.is_some() && link == self.owners[o].links[f]
    }

    /// A frontend has no link to an owner any more. Who had nothing to do with that owner keeps the
    /// connection; who has a job of it cannot.
    pub(crate) fn lose_near(&mut self, f: usize, o: usize) {
        let Some(link) = self.frontends[f].links[o].take() else {
            return;
        };
        let (now, shard) = (self.now, ShardId(o as u8));
        say!(self, "f{f} loses s{o}");
        let was_up = self.frontends[f].table().shards.end(shard).is_up();
        let bound = if was_up {
            self.before_loss(f, shard)
        } else {
            Vec::new()
        };
        let frontend = &mut self.frontends[f];
        remote::lose(frontend.table(), now, shard);
        frontend.down_until[o] = Nanos::MAX;
        for (session, is_bound) in bound {
            let is_lost = frontend.table().is_lost(session);
            assert!(is_lost || !is_bound, "{session:?} has a job of s{o}");
        }
        if let Some(channel) = self.channels.get_mut(&link) {
            channel.leave_near();
        }
        self.look(f);
        self.sweep();
    }

    /// Takes note of who may lose the connection with a link, and tells who has to.
    fn before_loss(&mut self, f: usize, shard: ShardId) -> Vec<(SessionId, bool)> {
        let (now, map) = (self.now, self.map);
        let mut bound = Vec::new();
        let table = self.frontends[f].sessions.as_mut().expect("it runs");
        let truth = &mut self.truth.borrow_mut();
        for client in self
            .clients
            .iter_mut()
            .filter(|client| client.frontend == f)
        {
            if table.is_lost(client.id) {
                client.forget_at(now, shard, map);
                continue;
            }
            let may = client.may_need(shard, map);
            client.may_be_lost |= may;
            let holds = client.holds_at(shard, map).any(|told| told.deadline > now);
            if may {
                match client.sent.front().map(|sent| &sent.command) {
                    Some(Command::Put(_)) => truth.see("lost with a put"),
                    Some(Command::Reserve | Command::ReserveWithTimeout(_)) => {
                        truth.see("lost with a reserve");
                    }
                    _ => {}
                }
                let mut jobs = truth.jobs.values();
                if jobs.any(|job| job.offer.is_some_and(|offer| offer.to == client.who)) {
                    truth.see("lost with an offer");
                }
            }
            let mut all = client.told.iter().filter(|told| told.is_open());
            if holds && all.any(|told| map.of_job(told.id) != shard) {
                truth.see("lost with jobs at two owners");
            }
            client.forget_at(now, shard, map);
            bound.push((client.id, holds));
        }
        bound
    }

    /// Takes note of how credit is used.
    pub(crate) fn look_at_credit(&mut self, f: usize, o: usize) {
        let shard = ShardId(o as u8);
        if let Some(table) = &mut self.frontends[f].sessions
            && matches!(table.shards.end(shard).reach(), Reach::Full(_))
        {
            self.truth.borrow_mut().see("out of credit");
        }
    }
}
