//! A process that has jobs.

use std::os::fd::AsFd;

use crate::role::control::{ControlRead, ControlSocket};
use crate::role::error::RoleError;
use crate::sys::poller::{Interest, Poller};
use crate::wire::control::Control;
use crate::wire::setup::Setup;

/// Serves as `setup` says until the supervisor says goodbye or is gone. Messages may have come
/// already: they are to be taken from `control` before anything is waited for.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later.
pub fn serve(_setup: Setup, control: ControlSocket) -> Result<(), RoleError> {
    stand_in(control)
}

/// Is healthy, and does nothing.
pub(super) fn stand_in(mut control: ControlSocket) -> Result<(), RoleError> {
    let mut poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
    poller
        .watch(control.as_fd(), 0, Interest::READ)
        .map_err(|source| RoleError::WatchControl { source })?;
    control.push(&Control::Ready, None)?;
    let mut ready = Vec::new();
    loop {
        while let Some((message, _)) = control.next_message()? {
            match message {
                Control::Goodbye(_) => return Ok(()),
                Control::Ping(number) => control.push(&Control::Pong(number), None)?,
                _ => {}
            }
        }
        control.flush()?;
        poller
            .wait(None, &mut ready)
            .map_err(|source| RoleError::Wait { source })?;
        if control.read()? == ControlRead::End {
            return Ok(());
        }
    }
}
