//! What goes wrong, and how it is repaired: links are cut, processes crash or stop for a while, an
//! owner finds a frontend slow, and what comes over a link is not what should.

use beanshard::base::ids::ShardId;
use beanshard::wire::kind::{ControlKind, Kind};

use crate::channel::Channel;
use crate::random::Random;
use crate::world::{World, say};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A link is cut.
    Cut,
    CrashOwner,
    CrashFrontend,
    /// A process does nothing for a while.
    Stop,
    /// An owner finds a frontend slow for a while.
    Slow,
    /// A frame comes again.
    Repeat,
    /// A frame comes that is for another process, or of another topology.
    Stray,
    /// One of the two is told wrong things about the other.
    Misled,
    /// An owner is killed in the middle of something that it does with its disk.
    Doom,
    /// The power of the whole server is cut.
    PowerCut,
    /// A disk is full for a while.
    FullDisk,
    /// A disk does not sync.
    BrokenDisk,
}

/// What goes wrong where nothing is kept.
const ALL: [Fault; 8] = [
    Fault::Cut,
    Fault::CrashOwner,
    Fault::CrashFrontend,
    Fault::Stop,
    Fault::Slow,
    Fault::Repeat,
    Fault::Stray,
    Fault::Misled,
];

/// What goes wrong besides where owners have binlogs.
const OF_DISKS: [Fault; 5] = [
    Fault::CrashOwner,
    Fault::Doom,
    Fault::PowerCut,
    Fault::FullDisk,
    Fault::BrokenDisk,
];

impl Fault {
    /// The same where owners have binlogs. Some of them always end.
    pub(crate) fn some_of_disks(random: &mut Random) -> Vec<Fault> {
        match random.below(10) {
            0..5 => vec![random.pick(&OF_DISKS), random.pick(&OF_DISKS)],
            5..8 => OF_DISKS.to_vec(),
            _ => OF_DISKS.into_iter().chain(ALL).collect(),
        }
    }

    /// What goes wrong in a run: nothing in many, one kind of thing in some, anything in others.
    pub(crate) fn some(random: &mut Random) -> Vec<Fault> {
        match random.below(10) {
            0..4 => Vec::new(),
            4..8 => vec![random.pick(&ALL), random.pick(&ALL)],
            _ => ALL.to_vec(),
        }
    }
}

impl World {
    pub(crate) fn suffer(&mut self, fault: Fault) {
        let (f, o) = self.some_pair();
        match fault {
            Fault::Cut => self.cut(f, o),
            Fault::CrashOwner => self.kill_owner(o),
            Fault::CrashFrontend if self.frontends[f].sessions.is_some() => self.crash_frontend(f),
            Fault::Stop if self.random.percent(50) => {
                say!(self, "s{o} stops");
                self.owners[o].is_stopped = true;
            }
            Fault::Stop => {
                say!(self, "f{f} stops");
                self.frontends[f].is_stopped = true;
            }
            Fault::Slow => self.find_slow(f, o, true),
            Fault::Repeat => self.repeat(f, o),
            Fault::Stray => self.stray(f, o),
            Fault::Misled => {
                self.cut(f, o);
                if self.frontends[f].turns() {
                    self.lose_near(f, o);
                }
                self.mend(f, o, false);
            }
            Fault::CrashFrontend => {}
            Fault::Doom => self.doom(o),
            Fault::PowerCut => self.cut_power(),
            Fault::FullDisk => self.fill_disk(o),
            Fault::BrokenDisk => self.break_disk(o),
        }
    }

    fn channel(&mut self, f: usize, o: usize) -> Option<&mut Channel> {
        let link = self.frontends[f].links[o]?;
        self.channels.get_mut(&link)
    }

    /// What is under way arrives as far as it does, and nothing after it.
    fn cut(&mut self, f: usize, o: usize) {
        let chances = [self.random.next(), self.random.next()];
        let Some(channel) = self.channel(f, o) else {
            return;
        };
        for (pipe, chance) in [&mut channel.up, &mut channel.down]
            .into_iter()
            .zip(chances)
        {
            let len = pipe.bytes.len() as u64;
            pipe.cut((chance % (len + 1)) as usize);
        }
        say!(self, "the link of f{f} and s{o} is cut");
    }

    fn find_slow(&mut self, f: usize, o: usize, is_slow: bool) {
        let now = self.now;
        let owner = &mut self.owners[o];
        if let (true, Some(hub)) = (owner.turns() && owner.links[f].is_some(), &mut owner.hub)
            && owner.slow[f] != is_slow
        {
            owner.slow[f] = is_slow;
            hub.set_slow(now, f as u16, is_slow);
            say!(self, "s{o} finds f{f} slow: {is_slow}");
        }
    }

    /// A frame comes once more, late. An attach of a session that is gone and a detach are
    /// harmless; an ask costs the link.
    fn repeat(&mut self, f: usize, o: usize) {
        let Some(count) = self.channel(f, o).map(|channel| channel.kept.len()) else {
            return;
        };
        if count == 0 {
            return;
        }
        let at = self.random.index(count);
        let clients = self.clients.iter().filter(|client| client.frontend == f);
        let open: Vec<u64> = clients.map(|client| client.id.number).collect();
        let Some(channel) = self.channel(f, o) else {
            return;
        };
        let (session, kind) = (channel.kept[at].session, channel.kept[at].kind);
        let bytes = channel.kept[at].bytes.clone();
        let is_open = open.contains(&session);
        let is_cut = channel.up.is_closed || channel.up.is_dead;
        // Nobody would repeat a detach that has not been said.
        if is_cut || (is_open && kind == Kind::Control(ControlKind::Detach)) {
            return;
        }
        channel.up.bytes.extend_from_slice(&bytes);
        say!(
            self,
            "{kind:?} of f{f}.{} comes to s{o} again",
            session >> 24
        );
        self.truth.borrow_mut().see(match kind {
            Kind::Control(ControlKind::Attach) => "attach repeated",
            Kind::Control(_) => "detach repeated",
            _ => "ask repeated",
        });
        // Who is told that an attach was refused has to give its session up.
        let clients = self.clients.iter_mut();
        for client in clients.filter(|client| client.frontend == f && client.id.number == session) {
            client.may_be_lost = true;
        }
    }

    /// A frame comes that is not of this link. It costs the link and nothing else.
    fn stray(&mut self, f: usize, o: usize) {
        let what = self.random.below(3);
        let Some(channel) = self.channel(f, o) else {
            return;
        };
        let Some(kept) = channel.kept.last() else {
            return;
        };
        if channel.up.is_closed || channel.up.is_dead {
            return;
        }
        // Generation of the sender, of the receiver, topology: see the table of the header.
        let place = [12, 16, 20][what as usize];
        let mut bytes = kept.bytes.clone();
        bytes[place] ^= 1;
        channel.up.bytes.extend_from_slice(&bytes);
        say!(self, "a stray frame comes to s{o} from f{f}");
    }
}

/// Repairs.
impl World {
    /// Something that is broken is looked after.
    pub(crate) fn repair_some(&mut self) {
        let (f, o) = self.some_pair();
        match self.random.below(6) {
            0 => self.restart(f, o),
            1 => self.frontends[f].is_stopped = false,
            2 => self.owners[o].is_stopped = false,
            3 => {
                self.find_slow(f, o, false);
                self.repair_disk(o);
            }
            _ => {
                self.mend(f, o, true);
                self.tell_news();
            }
        }
    }

    fn restart(&mut self, f: usize, o: usize) {
        if self.frontends[f].sessions.is_none() {
            self.start_frontend(f);
        }
        if self.owners[o].hub.is_none() && self.begin_start(o) {
            self.start_owner(o);
        }
    }

    /// Everything runs again, and every pair has a link.
    pub(crate) fn repair_all(&mut self) {
        for f in 0..self.frontends.len() {
            self.frontends[f].is_stopped = false;
            for o in 0..self.owners.len() {
                self.owners[o].is_stopped = false;
                self.calm(o);
                self.begin_start(o);
                self.restart(f, o);
                self.find_slow(f, o, false);
            }
        }
        for f in 0..self.frontends.len() {
            for o in 0..self.owners.len() {
                self.mend(f, o, true);
            }
        }
        while self.tell_news() {}
    }

    /// Whether every pair has a link that can be asked over.
    pub(crate) fn is_mended(&mut self) -> bool {
        let owners = self.owners.len();
        self.news.is_empty()
            && self.frontends.iter_mut().all(|frontend| {
                let shards = &mut frontend.table().shards;
                (0..owners).all(|o| shards.end(ShardId(o as u8)).is_up())
            })
    }
}
