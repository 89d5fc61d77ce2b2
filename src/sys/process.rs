//! The process itself: its rights, its limits, what it has used, and the machine it runs on.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, rlim_t, setrlimit};
use nix::sys::time::TimeValLike;
use nix::unistd::{Gid, Uid, User, getpid, setgid, setuid};

/// Variables by which a service manager tells of sockets that it hands over.
const LISTEN_VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Where random bytes come from.
const RANDOM_PATH: &str = "/dev/urandom";

/// Why the process cannot be what it should be.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The limit of descriptors could not be read or raised.
    #[error("cannot raise the limit of open files to {wanted}")]
    DescriptorLimit {
        /// What was asked for; 0 if the limit could not even be read.
        wanted: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The user database could not be asked.
    #[error("getpwnam({}): cannot read the user database", user.display())]
    UserDatabase {
        /// Whom we looked for.
        user: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// The user database does not know the user.
    #[error("getpwnam({}): no such user", user.display())]
    NoSuchUser {
        /// Whom we looked for.
        user: OsString,
    },
    /// The process may not become the user.
    #[error("{call}: cannot become user {}", user.display())]
    Privileges {
        /// The call that was refused.
        call: &'static str,
        /// Whom we wanted to be.
        user: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// There are no random bytes.
    #[error("{RANDOM_PATH}: cannot read random bytes")]
    Random {
        /// What the system said.
        source: io::Error,
    },
    /// The machine does not tell its name.
    #[error("uname: cannot identify the machine")]
    Machine {
        /// What the system said.
        source: io::Error,
    },
}

/// Processor time that the process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Microseconds in the program.
    pub user_micros: u64,
    /// Microseconds in the kernel on its behalf.
    pub system_micros: u64,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            user_micros: self.user_micros + other.user_micros,
            system_micros: self.system_micros + other.system_micros,
        }
    }
}

/// The machine, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name in the network.
    pub nodename: String,
    /// The version of its system.
    pub version: String,
    /// Its kind of processor.
    pub machine: String,
}

/// Lets the process open as many files as its hard limit allows, and returns how many those are.
///
/// # Errors
/// [`ProcessError::DescriptorLimit`]; the old limit stays.
pub fn raise_descriptor_limit() -> Result<u64, ProcessError> {
    let failed = |wanted: rlim_t| {
        move |errno: nix::Error| ProcessError::DescriptorLimit {
            wanted: limit_number(wanted),
            source: errno.into(),
        }
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed(0))?;
    let wanted = reachable(hard);
    if soft >= wanted {
        return Ok(limit_number(soft));
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(failed(wanted))?;
    Ok(limit_number(wanted))
}

/// macOS refuses numbers above its `OPEN_MAX`, whatever the hard limit says.
fn reachable(hard: rlim_t) -> rlim_t {
    if cfg!(target_os = "macos") {
        hard.min(10_240)
    } else {
        hard
    }
}

/// The system's type for limits is signed in places, and never negative.
#[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
fn limit_number(limit: rlim_t) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX)
}

/// Gives up the rights of the process's user for those of `user`: supplementary groups, group and
/// user id, in this order, for good.
///
/// Who already is `user` and may not set groups keeps the ones there are: nothing is given up
/// then, and the start of a service that names its own user goes on as it always did.
///
/// # Errors
/// [`ProcessError::UserDatabase`], [`ProcessError::NoSuchUser`] or [`ProcessError::Privileges`].
/// After the last the process may be half changed and must end.
pub fn drop_privileges(user: &OsStr) -> Result<(), ProcessError> {
    let found = find_user(user)?;
    let refused = |call: &'static str| {
        let user = user.to_owned();
        move |source: io::Error| ProcessError::Privileges { call, user, source }
    };
    let is_same = Uid::current() == found.uid && Uid::effective() == found.uid;
    match set_groups(&found.name, found.gid) {
        Err(error) if is_same && error.kind() == io::ErrorKind::PermissionDenied => {}
        result => result.map_err(refused("initgroups"))?,
    }
    setgid(found.gid).map_err(|errno| refused("setgid")(errno.into()))?;
    setuid(found.uid).map_err(|errno| refused("setuid")(errno.into()))
}

fn find_user(user: &OsStr) -> Result<User, ProcessError> {
    let unknown = || ProcessError::NoSuchUser {
        user: user.to_owned(),
    };
    let name = user.to_str().ok_or_else(unknown)?;
    User::from_name(name)
        .map_err(|errno| ProcessError::UserDatabase {
            user: user.to_owned(),
            source: errno.into(),
        })?
        .ok_or_else(unknown)
}

fn set_groups(user: &str, group: Gid) -> io::Result<()> {
    let name = CString::new(user)?;
    // SAFETY: the name is a C string that outlives the call. The group's type is signed on macOS,
    // where the same bits mean the same group.
    let rc = unsafe { libc::initgroups(name.as_ptr(), group.as_raw() as _) };
    if rc == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What the process has used since it was started.
#[must_use]
pub fn usage() -> Usage {
    usage_of(UsageWho::RUSAGE_SELF)
}

/// The same, and what those of its children have used that have ended and were asked for.
#[must_use]
pub fn usage_with_ended_children() -> Usage {
    let (own, children) = (usage(), usage_of(UsageWho::RUSAGE_CHILDREN));
    Usage {
        user_micros: own.user_micros + children.user_micros,
        system_micros: own.system_micros + children.system_micros,
    }
}

fn usage_of(who: UsageWho) -> Usage {
    let Ok(usage) = getrusage(who) else {
        // The call fails for wrong arguments only.
        return Usage::default();
    };
    let micros = |micros: i64| u64::try_from(micros).unwrap_or(0);
    Usage {
        user_micros: micros(usage.user_time().num_microseconds()),
        system_micros: micros(usage.system_time().num_microseconds()),
    }
}

/// The machine that the process runs on. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// [`ProcessError::Machine`].
pub fn machine() -> Result<Machine, ProcessError> {
    let uname = nix::sys::utsname::uname().map_err(|errno| ProcessError::Machine {
        source: errno.into(),
    })?;
    let text = |field: &OsStr| field.to_string_lossy().into_owned();
    Ok(Machine {
        nodename: text(uname.nodename()),
        version: text(uname.version()),
        machine: text(uname.machine()),
    })
}

/// The number of this process.
#[must_use]
pub fn pid() -> u32 {
    getpid().as_raw().unsigned_abs()
}

/// Gives the process the short name that `top` and `ps -e` show, where the system has one: on
/// Linux its first 15 bytes. The longer title that `ps -f` shows is given by whoever starts the
/// process (`sys::spawn`); a running process could only write over its arguments for that.
/// A name with a zero byte changes nothing. To be called by the first thread.
pub fn set_name(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = CString::new(name) {
        // The call fails for an address that is none.
        let _ = nix::sys::prctl::set_name(&name);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

/// Eight bytes that nobody can guess.
///
/// # Errors
/// [`ProcessError::Random`].
pub fn random_bytes() -> Result<[u8; 8], ProcessError> {
    random_from(Path::new(RANDOM_PATH)).map_err(|source| ProcessError::Random { source })
}

fn random_from(path: &Path) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Gives unused memory back to the system where the allocator would keep it. Takes time in
/// proportion to the heap, so it is for the moment after a large backlog has gone.
pub fn trim_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the allocator locks itself, and nothing that is in use moves.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Removes the variables of socket activation, so that no program started from here takes the
/// sockets for its own. To be called at start, before there is a second thread.
pub fn remove_listen_variables() {
    for name in LISTEN_VARIABLES {
        if std::env::var_os(name).is_some() {
            // SAFETY: the program has one thread at this point, so nobody reads the environment
            // meanwhile. In tests, which have many, the variables are not set.
            unsafe { std::env::remove_var(name) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_limit_reaches_the_hard_limit() {
        let raised = raise_descriptor_limit().unwrap();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, reachable(hard));
        assert_eq!(raised, limit_number(soft));
        assert_eq!(raise_descriptor_limit().unwrap(), raised);
    }

    #[test]
    fn an_unknown_user_is_told_from_a_broken_database() {
        for user in ["no-such-user-here", ""] {
            let error = drop_privileges(OsStr::new(user)).unwrap_err();
            assert!(
                matches!(error, ProcessError::NoSuchUser { .. }),
                "{error:?}"
            );
        }
    }

    #[test]
    fn the_own_user_can_be_named() {
        let Some(me) = User::from_uid(Uid::current()).unwrap() else {
            return; // A user without a name, as containers like to have.
        };
        drop_privileges(OsStr::new(&me.name)).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_is_shown_as_far_as_it_fits() {
        // The name is the thread's, and only the first thread's is the process's.
        let shown = || std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        set_name("owner 2");
        assert_eq!(shown(), "owner 2\n");
        set_name("own\0er");
        assert_eq!(shown(), "owner 2\n");
        set_name("frontend 1234567");
        assert_eq!(shown(), "frontend 123456\n");
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(random_bytes().unwrap(), random_bytes().unwrap());
        assert!(random_from(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn the_process_and_its_machine_are_known() {
        assert_eq!(pid(), std::process::id());
        let machine = machine().unwrap();
        assert!(!machine.nodename.is_empty() && !machine.machine.is_empty());
        let before = usage();
        while usage() == before {
            std::hint::spin_loop();
        }
        assert!(usage_with_ended_children().user_micros >= before.user_micros);
        trim_memory();
    }
}
