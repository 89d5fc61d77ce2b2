//! Owners that keep their jobs: each has a binlog on a disk of its own, whose syncs take a while
//! and sometimes fail, and which may be full. Processes are killed, the power is cut, and starts
//! are interrupted. What a start finds is compared with what the ledger says.

use std::cell::RefCell;
use std::rc::Rc;

use beanshard::base::ids::{Seq, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::{NANOS_PER_SEC, Nanos};
use beanshard::engine::host::Ticket;
use beanshard::role::shard::Shard;
use beanshard::session::shards::ShardMap;
use beanshard::wal::error::WalError;
use beanshard::wal::journal::{Settings, Sync};
use beanshard::wal::recover::Recovery;
use beanshard::wal::v8::V8;
use beanshard::wire::kind::EventKind;

use crate::client::Client;
use crate::command::{Command, Put};
use crate::fault::Fault;
use crate::ledger::{Found, Ledger, Shown};
use crate::names::{text_of, tube};
use crate::random::Random;
use crate::scribe::Scribe;
use crate::storage::{Crash, Faults, MemoryStorage, Watch};
use crate::truth::{Truth, Who};
use crate::witness::{Witness, engine_of, wall_of};
use crate::world::{World, say};

/// See the module's description.
pub(crate) struct Binlog {
    disk: MemoryStorage,
    ledger: Rc<RefCell<Ledger>>,
    settings: Settings,
    /// The owner is being started.
    is_starting: bool,
    /// Bytes that the disk has room for, while it is full.
    capacity: Option<u64>,
    /// The disk is full, or does not sync.
    is_troubled: bool,
    /// Until when the disk was full.
    pub(crate) full_until: Nanos,
}

/// How owners keep what they have, and how their disks do.
#[derive(Clone, Copy)]
pub(crate) struct Keeping {
    settings: Settings,
    /// Chance that a sync ends, at each step.
    sync_chance: u64,
}

/// Chance in percent that the power is cut when that would hurt.
const OMEN_CHANCE: u64 = 5;

/// Operations of a disk among which a kill falls that comes in the middle of something.
const NEAR: u64 = 12;

/// How long a binlog may refuse what it can take after a disk was full.
const RETRY_NANOS: u64 = NANOS_PER_SEC / 2;

/// How often a binlog may have something to do at one moment.
const TURNS_MAX: usize = 200;

impl Keeping {
    pub(crate) fn random(random: &mut Random) -> Keeping {
        let sync = match random.below(5) {
            0 => Sync::Never,
            1 => Sync::Every(random.below(2 * NANOS_PER_SEC)),
            _ => Sync::Always,
        };
        let file_len = random.pick(&[400, 700, 1_500, 4_000, 20_000]);
        Keeping {
            settings: Settings { file_len, sync },
            sync_chance: random.pick(&[1, 5, 30, 80]),
        }
    }
}

impl Binlog {
    pub(crate) fn new(keeping: Keeping) -> Binlog {
        Binlog {
            disk: MemoryStorage::new(),
            ledger: Rc::default(),
            settings: keeping.settings,
            is_starting: false,
            capacity: None,
            is_troubled: false,
            full_until: Nanos(0),
        }
    }

    /// The process is gone, or all of the machine. If there is a picture it is of that moment.
    fn crash(&mut self, crash: Crash, seed: u64) {
        let picture = self.disk.take_pictures().into_iter().next();
        let picture = picture.unwrap_or_else(|| self.disk.picture());
        self.disk = picture.after(crash, seed);
        // The picture may be of another time.
        self.disk.set_capacity(self.capacity);
        self.is_starting = false;
        let is_promised = crash == Crash::Killed || self.settings.sync == Sync::Always;
        self.ledger.borrow_mut().is_forgiven |= !is_promised;
    }

    /// Whether something is on its way to the disk.
    pub(crate) fn is_syncing(&self) -> bool {
        self.disk.is_syncing()
    }

    /// An answer has left the owner.
    pub(crate) fn on_left(&self, who: Who, seq: Seq, kind: EventKind) {
        self.ledger.borrow_mut().leave(who, seq, kind);
    }

    fn read(
        &self,
        now: Nanos,
        map: ShardMap,
        owner: ShardId,
        disk: MemoryStorage,
    ) -> Result<Recovery<MemoryStorage, V8>, WalError> {
        let format = V8 {
            fingerprint: map.fingerprint(),
            owner,
            skip_damage: false,
        };
        Recovery::read_as(format, disk, self.settings, now, wall_of(now), &mut |_| {})
    }

    /// What a start would find.
    fn find(&self, now: Nanos, map: ShardMap, owner: ShardId) -> Found {
        let disk = self.disk.picture().after(Crash::Killed, 0);
        let read = self.read(now, map, owner, disk);
        let mut recovery = read.unwrap_or_else(|error| panic!("s{} reads: {error:?}", owner.0));
        let mut found = Found {
            jobs: Vec::new(),
            bodies: Vec::new(),
            pauses: Vec::new(),
            highest: recovery.highest(),
            now,
            has_default: map.of_tube(TubeName::DEFAULT) == owner,
        };
        while recovery.jobs_left() > 0 {
            recovery.restore_next(|one| {
                let shown = Shown::job(&one.job, text_of(one.tube));
                found.jobs.push((one.job.id, shown));
                found.bodies.push((one.job.id, one.body));
                None
            });
        }
        while recovery.pauses_left() > 0 {
            recovery.restore_pause(|one| {
                let (length, until) = (one.length, one.until);
                let shown = Shown::Pause { length, until };
                found.pauses.push((text_of(one.tube), shown));
                false
            });
        }
        found
    }

    /// Whether a start may find this.
    ///
    /// # Panics
    /// If it may not.
    fn check(&self, found: &Found, truth: &Truth) {
        let ledger = self.ledger.borrow();
        let highest = found.highest;
        if !ledger.is_forgiven {
            for &id in &ledger.told {
                let may_go = truth.deleted.contains(&id);
                assert!(found.has(id) || may_go, "{id:?} was confirmed and is lost");
                assert!(id <= highest, "{id:?} is forgotten, {highest:?} is known");
            }
            for &id in &ledger.told_gone {
                assert!(!found.has(id), "{id:?} was deleted and is back");
            }
        }
        for (id, body) in &found.bodies {
            let put = truth.bodies.get(id);
            let put = put.unwrap_or_else(|| panic!("{id:?} was found and never put"));
            assert!(put[..] == body[..], "{id:?} was found with another body");
        }
        ledger.check(found);
    }

    /// Goes on from what is there, which was checked.
    fn begin(&self, now: Nanos, map: ShardMap, owner: ShardId) -> Result<Shard<Scribe>, WalError> {
        let recovery = self.read(now, map, owner, self.disk.clone())?;
        let shard = Shard::recover(engine_of(map, owner), recovery)?;
        let ledger = Rc::clone(&self.ledger);
        Ok(shard.wrap(|wal| Scribe::new(wal, ledger)))
    }
}

/// Starts.
impl World {
    /// The witness of an owner with a binlog that is started. None if it cannot be, for a reason
    /// that its disk has.
    pub(crate) fn recover(&mut self, o: usize) -> Option<Witness> {
        let (now, map, owner) = (self.now, self.map, ShardId(o as u8));
        let binlog = self.binlogs[o].as_ref()?;
        let found = binlog.find(now, map, owner);
        binlog.check(&found, &self.truth.borrow());
        let shard = match binlog.begin(now, map, owner) {
            Ok(shard) => shard,
            Err(failure) => {
                assert!(binlog.is_troubled, "s{o} does not start: {failure:?}");
                self.truth.borrow_mut().see("start failed");
                self.fail_owner(o, &failure);
                return None;
            }
        };
        if binlog.disk.has_pictures() {
            say!(self, "s{o} is killed in its start");
            self.truth.borrow_mut().see("start cut off");
            self.end_owner(o, Crash::Killed);
            return None;
        }
        say!(self, "s{o} starts with {} jobs", found.jobs.len());
        let binlog = self.binlogs[o].as_mut()?;
        binlog.is_starting = false;
        let ledger = &mut *binlog.ledger.borrow_mut();
        let truth = &mut *self.truth.borrow_mut();
        truth.see("recovered");
        if ledger.is_forgiven {
            truth.see("power cut without syncs");
        }
        truth.come_back(owner, &found, |id| map.of_job(id) == owner);
        ledger.begin_anew(&found);
        let kept = Some(Rc::clone(&binlog.ledger));
        let truth = Rc::clone(&self.truth);
        Some(Witness::new(owner, shard, truth, kept, self.verbose))
    }

    /// An owner that is down is about to start. Whether it can come up at once.
    pub(crate) fn begin_start(&mut self, o: usize) -> bool {
        let is_down = self.owners[o].hub.is_none();
        let binlog = self.binlogs[o].as_mut().filter(|_| is_down);
        binlog.is_none_or(|binlog| std::mem::replace(&mut binlog.is_starting, true))
    }

    /// A start that is under way is cut off after some operation of the disk.
    fn interrupt_start(&mut self, o: usize) {
        let (now, map) = (self.now, self.map);
        let after = 1 + self.random.below(NEAR);
        let Some(binlog) = self.binlogs[o].as_mut().filter(|one| one.is_starting) else {
            return;
        };
        binlog
            .disk
            .watch(Watch::At(binlog.disk.operations() + after));
        let _ = binlog.begin(now, map, ShardId(o as u8));
        say!(self, "s{o} is cut off in its start");
        self.truth.borrow_mut().see("start cut off");
    }
}

/// Crashes.
impl World {
    /// What is left on the disk of an owner that ends.
    pub(crate) fn leave_disk(&mut self, o: usize, crash: Crash) {
        self.interrupt_start(o);
        let seed = self.random.next();
        if let Some(binlog) = &mut self.binlogs[o] {
            binlog.crash(crash, seed);
        }
    }

    /// An owner is killed, be it while it starts.
    pub(crate) fn kill_owner(&mut self, o: usize) {
        if (0..self.owners.len()).any(|other| other != o && self.is_starting(other)) {
            self.truth.borrow_mut().see("killed while another starts");
        }
        if self.owners[o].hub.is_some() {
            self.crash_owner(o);
        } else if self.is_starting(o) {
            self.leave_disk(o, Crash::Killed);
        }
    }

    fn is_starting(&self, o: usize) -> bool {
        let binlog = self.binlogs[o].as_ref();
        binlog.is_some_and(|binlog| binlog.is_starting)
    }

    /// An owner will be killed in the middle of something that it does with its disk.
    pub(crate) fn doom(&mut self, o: usize) {
        let after = 1 + self.random.below(NEAR);
        if let Some(binlog) = &self.binlogs[o] {
            let at = binlog.disk.operations() + after;
            binlog.disk.watch(Watch::At(at));
        }
    }

    /// Everything stops at once, and disks keep what they have to and some of the rest.
    pub(crate) fn cut_power(&mut self) {
        say!(self, "the power is cut");
        self.truth.borrow_mut().see("power cut");
        if (0..self.owners.len()).any(|o| self.is_starting(o)) {
            self.truth.borrow_mut().see("power cut in a start");
        }
        let crash = self
            .random
            .pick(&[Crash::AllLost, Crash::SomeLost, Crash::SomeLost]);
        for f in 0..self.frontends.len() {
            if self.frontends[f].sessions.is_some() {
                self.crash_frontend(f);
            }
        }
        for o in 0..self.owners.len() {
            self.end_owner(o, crash);
        }
    }

    /// Somebody was handed a job while a sync was under way. If that job should have waited for it,
    /// this is when it shows.
    pub(crate) fn heed_omens(&mut self) {
        let is_ominous = std::mem::take(&mut self.is_ominous);
        let may = self.profile.faults.contains(&Fault::PowerCut);
        if is_ominous && may && self.random.percent(OMEN_CHANCE) {
            self.cut_power();
        }
    }

    /// The disk of an owner takes no more, does not sync, or does not write.
    pub(crate) fn fill_disk(&mut self, o: usize) {
        if let Some(binlog) = &mut self.binlogs[o] {
            say!(self, "the disk of s{o} is full");
            let used = binlog.disk.len_of(|_| true);
            binlog.capacity = Some(used);
            binlog.disk.set_capacity(binlog.capacity);
            binlog.full_until = Nanos::MAX;
            binlog.is_troubled = true;
            self.truth.borrow_mut().see("full disk");
        }
    }

    pub(crate) fn break_disk(&mut self, o: usize) {
        if let Some(binlog) = &mut self.binlogs[o] {
            say!(self, "the disk of s{o} does not sync");
            binlog.is_troubled = true;
            binlog.disk.set_faults(Faults {
                sync: true,
                ..Faults::default()
            });
        }
    }

    /// Nothing befalls an owner any more that has not yet.
    pub(crate) fn calm(&mut self, o: usize) {
        self.repair_disk(o);
        let Some(binlog) = &self.binlogs[o] else {
            return;
        };
        binlog.disk.watch(Watch::Off);
        if binlog.disk.has_pictures() {
            self.kill_owner(o);
        }
    }

    /// The disk of an owner is as it should be again.
    pub(crate) fn repair_disk(&mut self, o: usize) {
        let Some(binlog) = &mut self.binlogs[o] else {
            return;
        };
        binlog.disk.set_faults(Faults::default());
        binlog.is_troubled = false;
        if binlog.capacity.is_some() {
            say!(self, "the disk of s{o} has room again");
            binlog.capacity = None;
            binlog.disk.set_capacity(None);
            binlog.full_until = Nanos(self.now.0 + RETRY_NANOS);
        }
    }
}

/// Turns and syncs.
impl World {
    /// Ends a turn of an owner that turns: what is confirmed by now may leave. None if it has come
    /// to its end before anything could.
    pub(crate) fn end_turn(&mut self, o: usize) -> Option<Ticket> {
        let now = self.now;
        let confirmed = self.owners[o].hub.as_mut()?.shard.end_turn(now);
        let is_doomed = self.binlogs[o]
            .as_ref()
            .is_some_and(|binlog| binlog.disk.has_pictures());
        if is_doomed {
            self.truth.borrow_mut().see("killed in the middle");
            self.crash_owner(o);
            return None;
        }
        Some(confirmed)
    }

    /// An owner whose binlog has failed stops.
    pub(crate) fn stop_failed(&mut self, o: usize) {
        let hub = self.owners[o].hub.as_mut();
        if let Some(failure) = hub.and_then(|hub| hub.shard.take_failure()) {
            self.truth.borrow_mut().see("failed sync");
            self.fail_owner(o, &failure);
        }
    }

    fn fail_owner(&mut self, o: usize, failure: &WalError) {
        say!(self, "s{o} stops: {failure:?}");
        // What has not been synced may have been thrown away. Who waits for no sync is not
        // promised that it comes to that.
        let binlog = self.binlogs[o].as_ref();
        let waits = binlog.is_some_and(|binlog| binlog.settings.sync == Sync::Always);
        let crash = if waits {
            Crash::SomeLost
        } else {
            Crash::Killed
        };
        self.end_owner(o, crash);
    }

    /// Lets the disk of some owner come to the end of a sync.
    pub(crate) fn sync_some(&mut self) {
        let o = self.some_owner();
        if let (Some(keeping), Some(binlog)) = (self.profile.keeping, &self.binlogs[o])
            && self.random.percent(keeping.sync_chance)
        {
            binlog.disk.end_sync();
        }
    }

    /// Lets all disks do what there is to be done. Whether there was something.
    pub(crate) fn sync_all(&mut self) -> bool {
        let mut moved = false;
        for o in 0..self.owners.len() {
            for _ in 0..TURNS_MAX {
                let Some(disk) = self.binlogs[o].as_ref().map(|binlog| binlog.disk.clone()) else {
                    break;
                };
                if !self.owners[o].turns() || self.end_turn(o).is_none() {
                    break;
                }
                let moment = self.owners[o].hub.as_ref();
                let moment = moment.and_then(|hub| hub.shard.journal_moment());
                let is_due = moment.is_some_and(|moment| moment <= self.now);
                if !disk.is_syncing() && !is_due {
                    break;
                }
                disk.end_sync();
                moved = true;
            }
        }
        moved
    }

    /// Until when each owner's disk was full, the last time that it was.
    pub(crate) fn full_until(&self) -> Vec<Nanos> {
        let until = |binlog: &Binlog| binlog.full_until;
        let binlogs = self.binlogs.iter();
        binlogs
            .map(|binlog| binlog.as_ref().map_or(Nanos(0), until))
            .collect()
    }

    /// While an owner starts, clients of the others are answered as ever.
    pub(crate) fn probe_beside_a_start(&mut self) {
        let o = self.some_owner();
        self.kill_owner(o);
        self.begin_start(o);
        self.bustle_on();
        let shard = ShardId(o as u8);
        let is_at = |name: &str| self.map.of_tube(tube(name)) == shard;
        let tubes = self.tubes.iter().copied().filter(|name| !is_at(name));
        let tubes: Vec<&str> = tubes.collect();
        let is_free = |client: &Client| {
            let is_bound = client.holds_at(shard, self.map).next().is_some();
            client.sent.is_empty() && client.may_speak() && !is_bound
        };
        let client = self.clients.iter_mut().find(|client| is_free(client));
        let (Some(client), false) = (client, tubes.is_empty()) else {
            return;
        };
        let number = client.number;
        self.spoken += 1;
        let body = format!("{:x}", self.spoken).into_bytes();
        let mut truth = self.truth.borrow_mut();
        truth.see("put beside a start");
        client.last = None;
        client.say(Command::Use(self.random.pick(&tubes)), &mut truth);
        client.say(Command::Put(Put::plain(body)), &mut truth);
        drop(truth);
        self.bustle_on();
        let client = self.clients.iter().find(|client| client.number == number);
        let last = client.and_then(|client| client.last.as_ref());
        let is_in = last.is_some_and(|reply| reply.is("INSERTED"));
        assert!(is_in, "c{number} is answered {last:?} while s{o} starts");
    }
}
