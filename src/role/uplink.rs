//! A child's way to its supervisor: the control socket, with what the poller is asked about it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::role::control::{ControlError, ControlRead, ControlSocket};
use crate::sys::poller::{Interest, Poller};
use crate::wire::control::Control;

/// See the module's description.
pub(super) struct Uplink {
    control: ControlSocket,
    key: usize,
    interest: Interest,
}

impl Uplink {
    /// The control socket, which the poller watches as `key` from now on.
    pub(super) fn new(control: ControlSocket, key: usize, poller: &Poller) -> io::Result<Uplink> {
        let interest = Interest::READ;
        poller.watch(control.as_fd(), key, interest)?;
        Ok(Uplink {
            control,
            key,
            interest,
        })
    }

    /// Reads what there is. Whether the supervisor is still there.
    pub(super) fn read(&mut self) -> Result<bool, ControlError> {
        Ok(self.control.read()? != ControlRead::End)
    }

    /// The next thing that the supervisor says, see [`ControlSocket::next_message`].
    pub(super) fn next(&mut self) -> Result<Option<(Control<'_>, Option<OwnedFd>)>, ControlError> {
        self.control.next_message()
    }

    /// Tells the supervisor something, at the end of the turn.
    pub(super) fn tell(&mut self, control: &Control<'_>) -> Result<(), ControlError> {
        self.control.push(control, None)
    }

    /// Writes what there is to tell, as much as the socket takes.
    pub(super) fn flush(&mut self, poller: &Poller) -> Result<(), ControlError> {
        match self.control.flush() {
            // Reading tells of the end, and of what was said before it.
            Err(error) if error.is_peer_gone() => {}
            flushed => flushed?,
        }
        let wanted = self.control.interest();
        if wanted != self.interest {
            match poller.change(self.control.as_fd(), self.key, wanted) {
                Ok(()) => self.interest = wanted,
                Err(error) => log::error!("cannot watch control socket error={error}"),
            }
        }
        Ok(())
    }
}
