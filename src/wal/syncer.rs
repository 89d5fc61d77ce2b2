//! The thread that waits for the disk so that the event loop need not. It is given open files, and
//! says through a pipe when they are synced.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

/// See the module's description.
pub(super) struct Syncer {
    /// None when the thread is to end.
    batches: Option<Sender<Vec<Arc<File>>>>,
    outcomes: Receiver<io::Result<()>>,
    /// Gets a byte for each outcome.
    wake: PipeReader,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no descriptors or no thread to give.
    pub(super) fn start() -> io::Result<Syncer> {
        let (batches, work) = channel::<Vec<Arc<File>>>();
        let (done, outcomes) = channel();
        let (wake, mut waker) = pipe()?;
        let thread = thread::Builder::new()
            .name("wal-sync".to_owned())
            .spawn(move || {
                for batch in work {
                    let outcome = batch.iter().try_for_each(|file| file.sync_data());
                    // Whoever hears of it can count on the files being closed when they drop
                    // theirs.
                    drop(batch);
                    // Nobody listens any more when the process is about to end.
                    if done.send(outcome).is_err() || waker.write_all(&[1]).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Syncer {
            batches: Some(batches),
            outcomes,
            wake,
            thread: Some(thread),
        })
    }

    /// Hands over files to be synced. There is one outcome for each call.
    pub(super) fn start_sync(&self, files: Vec<Arc<File>>) {
        // If the thread is gone, waiting for the outcome tells.
        if let Some(batches) = &self.batches {
            let _ = batches.send(files);
        }
    }

    /// The next outcome, if there is one.
    pub(super) fn poll(&mut self) -> Option<io::Result<()>> {
        match self.outcomes.try_recv() {
            Ok(outcome) => Some(self.take_wake().and(outcome)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }

    /// Waits for the next outcome.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let outcome = self.outcomes.recv().map_err(|_| gone())?;
        self.take_wake().and(outcome)
    }

    /// Is readable when there is an outcome.
    pub(super) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes the byte that comes right behind an outcome.
    fn take_wake(&mut self) -> io::Result<()> {
        self.wake.read_exact(&mut [0])
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported, and there is nothing to add.
            let _ = thread.join();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that syncs has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_has_an_outcome() {
        let mut syncer = Syncer::start().unwrap();
        let file = Arc::new(tempfile::tempfile().unwrap());
        syncer.start_sync(vec![Arc::clone(&file)]);
        syncer.wait().unwrap();
        assert!(syncer.poll().is_none());
        // A pipe cannot be synced.
        let (reader, _writer) = pipe().unwrap();
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        syncer.start_sync(vec![file, Arc::new(reader)]);
        syncer.wait().unwrap_err();
    }
}
