//! A sharded server for one test, of which each process can be named.

use std::time::Duration;

use beanshard::base::ids::ShardId;
use beanshard::base::name::TubeName;
use beanshard::session::shards::ShardMap;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::fixture::{Listen, START_LIMIT, Server, wait_until};
use crate::peer::Peer;
use crate::process::{self, children, crash, go_on};
use crate::program::ours;

/// How a sharded server is started.
pub(crate) struct Words {
    pub(crate) words: Vec<String>,
    owners: usize,
    frontends: usize,
}

/// The words for so many owners and frontends.
pub(crate) fn words_of(owners: usize, frontends: usize, more: &[&str]) -> Words {
    let mut words = ours(&["--sharded"]);
    words.push(format!("--owners={owners}"));
    words.push(format!("--frontends={frontends}"));
    words.extend(more.iter().map(|&word| word.to_owned()));
    Words {
        words,
        owners,
        frontends,
    }
}

/// Supervisor, owners and frontends.
pub(crate) struct Fleet {
    pub(crate) server: Server,
    owners: usize,
    frontends: usize,
}

impl Fleet {
    /// So many owners and frontends, which serve. The frontends share one listening socket.
    pub(crate) fn of(owners: usize, frontends: usize, more: &[&str]) -> Fleet {
        Fleet::start(owners, frontends, more, Listen::Tcp)
    }

    /// The same with another way to the listening sockets.
    pub(crate) fn start(owners: usize, frontends: usize, more: &[&str], listen: Listen) -> Fleet {
        let dir = TempDir::new().expect("a folder can be made");
        Fleet::start_in(dir, &words_of(owners, frontends, more), listen)
    }

    /// Starts words that [`words_of`] has made, in a folder that may have something in it.
    pub(crate) fn start_in(dir: TempDir, words: &Words, listen: Listen) -> Fleet {
        let server = Server::start_in(dir, &words.words, listen).expect("the server starts");
        let is_ready = || server.output().contains(" supervisor: ready ");
        assert!(wait_until(START_LIMIT, is_ready), "{}", server.output());
        Fleet {
            server,
            owners: words.owners,
            frontends: words.frontends,
        }
    }

    /// The process that starts the others.
    pub(crate) fn supervisor(&self) -> Pid {
        self.server.pid()
    }

    /// The process that is this owner now.
    pub(crate) fn owner(&self, index: usize) -> Pid {
        self.child(&format!("beanshard: owner {index}"))
    }

    /// The process that is this frontend now.
    pub(crate) fn frontend(&self, index: usize) -> Pid {
        self.child(&format!("beanshard: frontend {index}"))
    }

    fn child(&self, title: &str) -> Pid {
        let mut found = None;
        wait_until(START_LIMIT, || {
            found = self.find(title);
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no {title}\n{}", self.server.output()))
    }

    fn find(&self, title: &str) -> Option<Pid> {
        let mut children = children(self.supervisor()).into_iter();
        children
            .find(|(other, _)| other == title)
            .map(|(_, pid)| pid)
    }

    /// All processes.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        let children = children(self.supervisor()).into_iter();
        let children = children.map(|(_, pid)| pid);
        [self.supervisor()].into_iter().chain(children).collect()
    }

    /// A client of this frontend. The others stand still for as long as it takes to come in.
    pub(crate) fn peer_at(&self, frontend: usize) -> Peer {
        self.peers_at(frontend, 1).pop().expect("one was asked for")
    }

    /// Several clients of this frontend.
    pub(crate) fn peers_at(&self, frontend: usize, count: usize) -> Vec<Peer> {
        let others = (0..self.frontends).filter(|&other| other != frontend);
        let others: Vec<Pid> = others.map(|other| self.frontend(other)).collect();
        others.iter().copied().for_each(process::stop);
        let mut peers: Vec<Peer> = (0..count).map(|_| Peer::of(&self.server)).collect();
        for peer in &mut peers {
            assert_eq!(peer.ask("list-tube-used"), "USING default");
        }
        others.iter().copied().for_each(go_on);
        peers
    }

    /// A client of any frontend.
    pub(crate) fn peer(&self) -> Peer {
        Peer::of(&self.server)
    }

    /// The name of a tube of this owner; another one for each `number`.
    pub(crate) fn tube(&self, owner: usize, number: usize) -> String {
        let map = ShardMap::new(self.owners);
        let is_there = |name: &String| {
            let tube = TubeName::parse(name.as_bytes()).expect("a name");
            map.of_tube(tube) == ShardId(owner as u8)
        };
        let names = (0..).map(|at| format!("t{at}"));
        let mut here = names.filter(is_there);
        here.nth(number).expect("there is no end of names")
    }

    /// Ends an owner, and keeps the supervisor from starting it again until [`Fleet::allow`].
    pub(crate) fn take_down(&self, owner: usize) {
        let pid = self.owner(owner);
        process::stop(self.supervisor());
        crash(pid);
    }

    /// Has the supervisor do its work again.
    pub(crate) fn allow(&self) {
        go_on(self.supervisor());
    }

    /// Waits until clients reach all owners.
    pub(crate) fn wait_until_whole(&self) {
        let count = self.owners + self.frontends;
        let is_answered = || {
            let mut peer = Peer::of(&self.server);
            // Who asks an owner that has just died is closed.
            let line = peer.try_send("list-tubes\r\n").then(|| peer.try_line());
            line.flatten().is_some_and(|line| line.starts_with("OK "))
        };
        let is_whole = || children(self.supervisor()).len() == count && is_answered();
        assert!(
            wait_until(Duration::from_secs(20), is_whole),
            "{}",
            self.server.output()
        );
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Who stands still would outlive the supervisor.
        for pid in self.pids() {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }
}

/// Has the client use the tube and watch it alone.
pub(crate) fn settle(peer: &mut Peer, tube: &str) {
    assert_eq!(peer.ask(&format!("use {tube}")), format!("USING {tube}"));
    peer.ask(&format!("watch {tube}"));
    peer.ask("ignore default");
}

/// Puts a job into the tube that is used, and says its id.
pub(crate) fn put(peer: &mut Peer, body: &[u8]) -> u64 {
    let answer = peer.put(body);
    let id = answer.strip_prefix("INSERTED ").map(str::parse);
    let Some(Ok(id)) = id else {
        panic!("put: {answer}");
    };
    id
}

/// Reserves a job, and says its id and body.
pub(crate) fn reserve(peer: &mut Peer) -> (u64, Vec<u8>) {
    let answer = peer.ask("reserve-with-timeout 10");
    reserved(peer, &answer)
}

/// Takes the body of a job whose line has come, and says its id and body.
pub(crate) fn reserved(peer: &mut Peer, answer: &str) -> (u64, Vec<u8>) {
    let words: Vec<&str> = answer.split(' ').collect();
    let ["RESERVED", id, len] = words[..] else {
        panic!("reserve: {answer}");
    };
    let body = peer.body(len.parse().expect("a length"));
    (id.parse().expect("an id"), body)
}
