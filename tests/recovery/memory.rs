//! The folder of a binlog in memory, with as much room as it is given. Syncs end at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Cursor};
use std::rc::Rc;

use beanshard::wal::storage::Storage;

type Bytes = Rc<RefCell<Vec<u8>>>;

/// See the module's description.
pub(crate) struct Memory {
    files: BTreeMap<String, Bytes>,
    /// Bytes that all files may have.
    room: u64,
    has_synced: bool,
}

impl Memory {
    /// A folder with these files, and with room for so many bytes more.
    pub(crate) fn new(files: &BTreeMap<String, Vec<u8>>, room: u64) -> Memory {
        let share = |bytes: &Vec<u8>| Rc::new(RefCell::new(bytes.clone()));
        let mut memory = Memory {
            files: files
                .iter()
                .map(|(name, bytes)| (name.clone(), share(bytes)))
                .collect(),
            room: 0,
            has_synced: false,
        };
        memory.room = memory.len() + room;
        memory
    }

    /// What is in it now.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let copy = |(name, bytes): (&String, &Bytes)| (name.clone(), bytes.borrow().clone());
        self.files.iter().map(copy).collect()
    }

    fn len(&self) -> u64 {
        let lens = self.files.values().map(|bytes| bytes.borrow().len() as u64);
        lens.sum()
    }

    fn find(&self, name: &str) -> io::Result<Bytes> {
        let found = self.files.get(name).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn take_room(&self, more: u64) -> io::Result<()> {
        if self.len() + more > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl Storage for Memory {
    type File = Bytes;
    type Reader = Cursor<Vec<u8>>;

    fn names(&self) -> io::Result<Vec<OsString>> {
        Ok(self.files.keys().map(OsString::from).collect())
    }

    fn read(&self, name: &str) -> io::Result<(Cursor<Vec<u8>>, u64)> {
        let bytes = self.find(name)?.borrow().clone();
        let len = bytes.len() as u64;
        Ok((Cursor::new(bytes), len))
    }

    fn create(&mut self, name: &str, len: u64) -> io::Result<Bytes> {
        if self.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.take_room(len)?;
        let file = Rc::new(RefCell::new(vec![0; len as usize]));
        self.files.insert(name.to_owned(), Rc::clone(&file));
        Ok(file)
    }

    fn open(&mut self, name: &str) -> io::Result<Bytes> {
        self.find(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from)?;
        self.files.remove(from);
        self.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.files.remove(name);
        Ok(())
    }

    fn write(&mut self, file: &Bytes, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = at as usize;
        let (before, end) = (file.borrow().len(), at + bytes.len());
        self.take_room(end.saturating_sub(before) as u64)?;
        let mut file = file.borrow_mut();
        file.resize(before.max(end), 0);
        file[at..end].copy_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, file: &Bytes, len: u64) -> io::Result<()> {
        file.borrow_mut().resize(len as usize, 0);
        Ok(())
    }

    fn start_sync(&mut self, _: Vec<Bytes>, _: bool) {
        assert!(!self.has_synced, "one sync at a time");
        self.has_synced = true;
    }

    fn poll_sync(&mut self) -> Option<io::Result<()>> {
        std::mem::take(&mut self.has_synced).then_some(Ok(()))
    }

    fn wait_sync(&mut self) -> io::Result<()> {
        assert!(self.has_synced, "there is a sync to wait for");
        self.has_synced = false;
        Ok(())
    }
}
