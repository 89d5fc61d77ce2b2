//! A disk in memory that forgets as disks do. What was written is seen at once and kept only when a
//! sync has ended; names are kept only when a sync was asked to keep names. A picture taken of it
//! after any operation tells what a crash at that moment would leave.
//!
//! It keeps the promises of an ordinary journaling file system and no others: changes of names
//! survive in order, so of those that were not synced some first ones are there; of what was
//! written to a file and not synced any part may be there. A process that is killed takes nothing
//! with it that was written, but leaves it as little synced as it was.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, Cursor, ErrorKind};
use std::rc::Rc;

use beanshard::wal::storage::Storage;

use crate::random::Random;

/// See the module's description. Clones are handles of the same disk.
#[derive(Clone)]
pub(crate) struct MemoryStorage(Rc<RefCell<Machine>>);

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(usize);

/// When pictures are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Never.
    Off,
    /// After each operation, and in the middle of each write.
    All,
    /// The same, but only of the operation with this number.
    At(u64),
}

/// What fails from now on, until it is set anew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Writing, after a part of it was done.
    pub(crate) write: Option<ErrorKind>,
    /// Making files.
    pub(crate) create: Option<ErrorKind>,
    /// Syncs that end.
    pub(crate) sync: bool,
}

/// How a machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// The process alone is killed.
    Killed,
    /// The power is cut, and nothing survives that was not synced.
    AllLost,
    /// The power is cut, and chance says what survives.
    SomeLost,
}

struct Machine {
    disk: Disk,
    watch: Watch,
    pictures: Vec<Picture>,
}

/// A disk at one moment.
pub(crate) struct Picture {
    disk: Disk,
    /// Number of the operation that was the last.
    pub(crate) operation: u64,
}

#[derive(Clone, Default)]
struct Disk {
    files: BTreeMap<FileId, Content>,
    made: usize,
    /// As they are seen, and as they are kept.
    names: BTreeMap<String, FileId>,
    kept_names: BTreeMap<String, FileId>,
    /// What has been done to names and is not kept.
    moves: VecDeque<Move>,
    sync: Option<Sync>,
    capacity: Option<u64>,
    faults: Faults,
    operations: u64,
}

/// Bytes are shared with pictures until they change.
#[derive(Clone, Default)]
struct Content {
    seen: Rc<Vec<u8>>,
    kept: Rc<Vec<u8>>,
    /// What leads from the one to the other.
    changes: VecDeque<Change>,
}

#[derive(Clone)]
enum Change {
    Len(u64),
    Write { at: usize, bytes: Rc<[u8]> },
}

#[derive(Clone)]
enum Move {
    Make { name: String, file: FileId },
    Rename { from: String, to: String },
    Remove { name: String },
}

/// A sync under way, or ended and not asked about.
#[derive(Clone)]
struct Sync {
    /// With the number of changes that it covers.
    files: Vec<(FileId, usize)>,
    moves: usize,
    outcome: Option<Result<(), ErrorKind>>,
}

impl MemoryStorage {
    pub(crate) fn new() -> MemoryStorage {
        Disk::default().into_storage()
    }

    /// Bytes that there is room for, of the lengths of all files.
    pub(crate) fn set_capacity(&self, bytes: Option<u64>) {
        self.0.borrow_mut().disk.capacity = bytes;
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.0.borrow_mut().disk.faults = faults;
    }

    pub(crate) fn watch(&self, watch: Watch) {
        self.0.borrow_mut().watch = watch;
    }

    /// The pictures that were taken since the last time.
    pub(crate) fn take_pictures(&self) -> Vec<Picture> {
        std::mem::take(&mut self.0.borrow_mut().pictures)
    }

    /// Whether there are some.
    pub(crate) fn has_pictures(&self) -> bool {
        !self.0.borrow().pictures.is_empty()
    }

    /// One of this moment.
    pub(crate) fn picture(&self) -> Picture {
        Picture::of(&self.0.borrow().disk)
    }

    /// How much was done so far.
    pub(crate) fn operations(&self) -> u64 {
        self.0.borrow().disk.operations
    }

    pub(crate) fn is_syncing(&self) -> bool {
        let sync = &self.0.borrow().disk.sync;
        sync.as_ref().is_some_and(|sync| sync.outcome.is_none())
    }

    /// Ends the sync that is under way, if one is.
    pub(crate) fn end_sync(&self) {
        if self.is_syncing() {
            self.operate(Disk::end_sync);
        }
    }

    /// Bytes of the files whose names pass.
    pub(crate) fn len_of(&self, pass: impl Fn(&str) -> bool) -> u64 {
        let machine = self.0.borrow();
        let names = machine.disk.names.iter();
        let files = names.filter(|(name, _)| pass(name));
        files.map(|(_, file)| machine.disk.len(*file)).sum()
    }

    /// The names and lengths of the files whose names pass.
    pub(crate) fn files(&self, pass: impl Fn(&str) -> bool) -> Vec<(String, u64)> {
        let machine = self.0.borrow();
        let names = machine.disk.names.iter();
        let files = names.filter(|(name, _)| pass(name));
        files
            .map(|(name, &file)| (name.clone(), machine.disk.len(file)))
            .collect()
    }

    /// Changes the bits of one byte of a file that are set here.
    pub(crate) fn damage(&self, name: &str, at: u64, bits: u8) {
        let disk = &mut self.0.borrow_mut().disk;
        let file = disk.find(name).expect("it is there");
        let content = disk.files.get_mut(&file).expect("it was made");
        Rc::make_mut(&mut content.seen)[at as usize] ^= bits;
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.borrow().disk.names.contains_key(name)
    }

    /// What has happened lately to names, and what is there.
    pub(crate) fn describe(&self) -> String {
        use std::fmt::Write;
        let disk = &self.0.borrow().disk;
        let mut text = String::new();
        for (name, file) in &disk.names {
            let content = &disk.files[file];
            let changes = content.changes.len();
            let (len, kept) = (content.seen.len(), content.kept.len());
            let is_kept = disk.kept_names.contains_key(name);
            let _ = write!(
                text,
                "\n  {name}: {len} bytes, kept {kept}, {changes} changes, name kept {is_kept}"
            );
        }
        text
    }

    fn operate<T>(&self, work: impl FnOnce(&mut Disk) -> T) -> T {
        let machine = &mut *self.0.borrow_mut();
        let done = work(&mut machine.disk);
        machine.disk.operations += 1;
        if machine.is_watched(machine.disk.operations) {
            machine.pictures.push(Picture::of(&machine.disk));
        }
        done
    }
}

impl Machine {
    fn is_watched(&self, operation: u64) -> bool {
        match self.watch {
            Watch::Off => false,
            Watch::All => true,
            Watch::At(number) => number == operation,
        }
    }
}

impl Picture {
    fn of(disk: &Disk) -> Picture {
        Picture {
            disk: disk.clone(),
            operation: disk.operations,
        }
    }

    /// What is there after this crash.
    pub(crate) fn after(&self, crash: Crash, seed: u64) -> MemoryStorage {
        let mut disk = self.disk.clone();
        disk.sync = None;
        disk.faults = Faults::default();
        if crash != Crash::Killed {
            let mut random = Random::new(seed ^ self.operation);
            disk.cut_power(crash == Crash::SomeLost, &mut random);
        }
        disk.into_storage()
    }
}

impl Disk {
    fn into_storage(self) -> MemoryStorage {
        MemoryStorage(Rc::new(RefCell::new(Machine {
            disk: self,
            watch: Watch::Off,
            pictures: Vec::new(),
        })))
    }

    fn len(&self, file: FileId) -> u64 {
        self.files[&file].seen.len() as u64
    }

    fn find(&self, name: &str) -> io::Result<FileId> {
        let file = self.names.get(name).copied();
        file.ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn has_room(&self, len: u64) -> bool {
        let used: u64 = self.names.values().map(|&file| self.len(file)).sum();
        self.capacity.is_none_or(|capacity| used + len <= capacity)
    }

    fn change(&mut self, file: FileId, change: Change) {
        let content = self.files.get_mut(&file).expect("it was made");
        change.apply(Rc::make_mut(&mut content.seen));
        content.changes.push_back(change);
    }

    fn change_names(&mut self, change: Move) {
        change.apply(&mut self.names);
        self.moves.push_back(change);
    }

    fn end_sync(&mut self) {
        let Some(sync) = &mut self.sync else {
            return;
        };
        if self.faults.sync {
            sync.outcome = Some(Err(ErrorKind::Other));
            return;
        }
        sync.outcome = Some(Ok(()));
        for (file, count) in &sync.files {
            let content = self.files.get_mut(file).expect("it was made");
            for change in content.changes.drain(..count) {
                change.apply(Rc::make_mut(&mut content.kept));
            }
        }
        for change in self.moves.drain(..sync.moves) {
            change.apply(&mut self.kept_names);
        }
        if self.moves.is_empty() {
            let names = &self.names;
            let is_named = |file| names.values().any(|&named| named == file);
            self.files.retain(|&file, _| is_named(file));
        }
    }

    /// What was not synced is lost, or some of it if `is_kind`.
    fn cut_power(&mut self, is_kind: bool, random: &mut Random) {
        let luck = random.below(4);
        let most = self.moves.len() as u64 + 1;
        let moves = match luck {
            _ if !is_kind => 0,
            0 => most - 1,
            _ => random.below(most),
        };
        for change in self.moves.drain(..).take(moves as usize) {
            change.apply(&mut self.kept_names);
        }
        self.names = self.kept_names.clone();
        for content in self.files.values_mut() {
            let kept = Rc::make_mut(&mut content.kept);
            for change in content.changes.drain(..).filter(|_| is_kind) {
                change.apply_parts(kept, luck, random);
            }
            content.seen = content.kept.clone();
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Len(len) => bytes.resize(*len as usize, 0),
            Change::Write { at, bytes: written } => {
                let end = at + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(written);
            }
        }
    }

    /// Does as much of it as chance wants, which has a bent.
    fn apply_parts(&self, bytes: &mut Vec<u8>, luck: u64, random: &mut Random) {
        match (self, luck) {
            (_, 0) => self.apply(bytes),
            (Change::Len(_), _) if random.percent(70) => self.apply(bytes),
            (Change::Len(_), _) => {}
            (Change::Write { at, bytes: written }, 1) => {
                let len = random.index(written.len() + 1);
                let part = Change::Write {
                    at: *at,
                    bytes: written[..len].into(),
                };
                part.apply(bytes);
            }
            (Change::Write { at, bytes: written }, _) => {
                // Pieces as a disk has them, on their places in the file.
                let mut from = 0;
                while from < written.len() {
                    let end = (at + from + 1).next_multiple_of(SECTOR_LEN) - at;
                    let end = end.min(written.len());
                    if random.percent(60) {
                        let piece = Change::Write {
                            at: at + from,
                            bytes: written[from..end].into(),
                        };
                        piece.apply(bytes);
                    }
                    from = end;
                }
            }
        }
    }
}

/// Bytes that a disk writes as a whole.
const SECTOR_LEN: usize = 512;

impl Move {
    fn apply(&self, names: &mut BTreeMap<String, FileId>) {
        match self {
            Move::Make { name, file } => {
                names.insert(name.clone(), *file);
            }
            Move::Rename { from, to } => {
                let file = names.remove(from).expect("earlier changes were made");
                names.insert(to.clone(), file);
            }
            Move::Remove { name } => {
                names.remove(name);
            }
        }
    }
}

impl Storage for MemoryStorage {
    type File = FileId;
    type Reader = Cursor<Vec<u8>>;

    fn names(&self) -> io::Result<Vec<OsString>> {
        let machine = self.0.borrow();
        Ok(machine.disk.names.keys().map(OsString::from).collect())
    }

    fn read(&self, name: &str) -> io::Result<(Cursor<Vec<u8>>, u64)> {
        let machine = self.0.borrow();
        let file = machine.disk.find(name)?;
        let bytes = machine.disk.files[&file].seen.to_vec();
        Ok((Cursor::new(bytes), machine.disk.len(file)))
    }

    fn create(&mut self, name: &str, len: u64) -> io::Result<FileId> {
        self.operate(|disk| {
            if let Some(kind) = disk.faults.create {
                return Err(kind.into());
            }
            if disk.names.contains_key(name) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            if !disk.has_room(len) {
                return Err(ErrorKind::StorageFull.into());
            }
            let file = FileId(disk.made);
            disk.made += 1;
            disk.files.insert(file, Content::default());
            disk.change(file, Change::Len(len));
            let name = name.to_owned();
            disk.change_names(Move::Make { name, file });
            Ok(file)
        })
    }

    fn open(&mut self, name: &str) -> io::Result<FileId> {
        self.0.borrow().disk.find(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.operate(|disk| {
            disk.find(from)?;
            assert!(!disk.names.contains_key(to), "{to} would be overwritten");
            let (from, to) = (from.to_owned(), to.to_owned());
            disk.change_names(Move::Rename { from, to });
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.operate(|disk| {
            disk.find(name)?;
            let name = name.to_owned();
            disk.change_names(Move::Remove { name });
            Ok(())
        })
    }

    fn write(&mut self, file: &FileId, at: u64, bytes: &[u8]) -> io::Result<()> {
        let machine = &mut *self.0.borrow_mut();
        let operation = machine.disk.operations + 1;
        let at = at as usize;
        let mut part = Random::new(operation).index(bytes.len() + 1);
        let fault = machine.disk.faults.write;
        if fault.is_some() {
            // A disk gives room in whole sectors.
            let end = (at + part) / SECTOR_LEN * SECTOR_LEN;
            part = end.saturating_sub(at);
        }
        let is_watched = machine.is_watched(operation);
        if fault.is_some() || is_watched {
            let mut torn = machine.disk.clone();
            let bytes = bytes[..part].into();
            torn.change(*file, Change::Write { at, bytes });
            if fault.is_some() {
                machine.disk = torn.clone();
            }
            if is_watched {
                machine.pictures.push(Picture::of(&torn));
            }
        }
        if fault.is_none() {
            let end = (at + bytes.len()) as u64;
            let more = end.saturating_sub(machine.disk.len(*file));
            if more > 0 && !machine.disk.has_room(more) {
                machine.disk.operations = operation;
                return Err(ErrorKind::StorageFull.into());
            }
            let bytes = bytes.into();
            machine.disk.change(*file, Change::Write { at, bytes });
        }
        machine.disk.operations = operation;
        if is_watched {
            machine.pictures.push(Picture::of(&machine.disk));
        }
        fault.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn cut(&mut self, file: &FileId, len: u64) -> io::Result<()> {
        self.operate(|disk| disk.change(*file, Change::Len(len)));
        Ok(())
    }

    fn start_sync(&mut self, files: Vec<FileId>, names: bool) {
        self.operate(|disk| {
            assert!(disk.sync.is_none(), "only one sync is under way at a time");
            let covered = |file| disk.files.get(&file).map(|content| content.changes.len());
            let files = files.into_iter();
            disk.sync = Some(Sync {
                files: files
                    .filter_map(|file| Some((file, covered(file)?)))
                    .collect(),
                moves: if names { disk.moves.len() } else { 0 },
                outcome: None,
            });
        });
    }

    fn poll_sync(&mut self) -> Option<io::Result<()>> {
        let disk = &mut self.0.borrow_mut().disk;
        let ended = disk.sync.take_if(|sync| sync.outcome.is_some())?;
        Some(ended.outcome?.map_err(io::Error::from))
    }

    fn wait_sync(&mut self) -> io::Result<()> {
        self.end_sync();
        self.poll_sync().expect("a sync was begun")
    }
}
