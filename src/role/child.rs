//! What every child does before it is what it is to be: it ignores signals, which its supervisor
//! hears, takes over its control socket, and waits to be told.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use socket2::Socket;

use crate::logging;
use crate::net::listener::Listener;
use crate::net::stream::Stream;
use crate::role::control::{ControlRead, ControlSocket};
use crate::role::error::RoleError;
use crate::role::{frontend, owner};
use crate::sys::poller::{Interest, Poller};
use crate::sys::process;
use crate::sys::signal::ignore_in_child;
use crate::sys::spawn::take_control_socket;
use crate::wire::control::Control;
use crate::wire::kind::Sender;
use crate::wire::setup::Setup;

/// Is what the supervisor says, until that says to end, or is gone. An owner has its binlog in
/// `dir` if there is one. To be called by the first thread, before there is another and before any
/// descriptor was opened.
///
/// # Errors
/// [`RoleError::NoControlSocket`] if this process is nobody's child, and whatever stops the role.
pub fn run(dir: Option<PathBuf>) -> Result<(), RoleError> {
    ignore_in_child()?;
    let mut control = take_control()?;
    let Some((setup, listener)) = wait_for_setup(&mut control)? else {
        return Ok(());
    };
    let index = setup.index;
    match (setup.role, listener) {
        (Sender::Owner, None) => {
            name("owner", index);
            owner::serve(setup, control, dir.as_deref())
        }
        (Sender::Frontend, Some(listener)) => {
            name("frontend", index);
            frontend::serve(setup, control, Listener::inherit(listener)?)
        }
        (Sender::Owner | Sender::Frontend | Sender::Supervisor, _) => Err(RoleError::NoSetup),
    }
}

/// How logs and `top` call this process; the latter shows 15 bytes.
fn name(role: &str, index: u16) {
    logging::init(&format!("{role}/{index}"));
    let short = if role == "owner" { "owner" } else { "front" };
    process::set_name(&format!("bean-{short}-{index}"));
}

/// The control socket, if what is open there can be one.
fn take_control() -> Result<ControlSocket, RoleError> {
    let take = || {
        let socket = Socket::from(take_control_socket()?);
        if !socket.local_addr()?.is_unix() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Stream::try_from(OwnedFd::from(socket))
    };
    let stream = take().map_err(|source| RoleError::NoControlSocket { source })?;
    Ok(ControlSocket::new(stream, Sender::Supervisor))
}

/// What this child is to be, with a frontend's listening socket. None if the supervisor is gone,
/// or wants it to end already. What it says after that stays in `control`.
fn wait_for_setup(
    control: &mut ControlSocket,
) -> Result<Option<(Setup, Option<OwnedFd>)>, RoleError> {
    let mut poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
    poller
        .watch(control.as_fd(), 0, Interest::READ)
        .map_err(|source| RoleError::WatchControl { source })?;
    let mut ready = Vec::new();
    loop {
        let read = control.read()?;
        match control.next_message()? {
            Some((Control::Setup(setup), listener)) => return Ok(Some((setup, listener))),
            Some((Control::Goodbye(_), _)) => return Ok(None),
            Some(_) => return Err(RoleError::NoSetup),
            None if read == ControlRead::End => return Ok(None),
            None => {}
        }
        poller
            .wait(None, &mut ready)
            .map_err(|source| RoleError::Wait { source })?;
    }
}
