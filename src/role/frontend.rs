//! A process that has clients.

use crate::net::listener::Listener;
use crate::role::control::ControlSocket;
use crate::role::error::RoleError;
use crate::role::owner::stand_in;
use crate::wire::setup::Setup;

/// Serves the clients of `listener` as `setup` says until the supervisor says goodbye or is gone.
/// Messages may have come already: they are to be taken from `control` before anything is waited
/// for.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later.
pub fn serve(_setup: Setup, control: ControlSocket, _listener: Listener) -> Result<(), RoleError> {
    stand_in(control)
}
