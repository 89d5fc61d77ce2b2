//! Many connections at once, and some that are gone before they are accepted.

use beanshard::sys::process::raise_descriptor_limit;
use nix::sys::signal::Signal;

use crate::fixture::{START_LIMIT, wait_until};
use crate::peer::Peer;
use crate::program::serve;

// L1.24
#[test]
fn a_thousand_connections_at_once_are_all_served() {
    const COUNT: usize = 1_000;
    assert!(raise_descriptor_limit().unwrap() > 2 * COUNT as u64);
    let server = serve(&[]);
    let mut peers: Vec<Peer> = (0..COUNT).map(|_| Peer::of(&server)).collect();
    for peer in &mut peers {
        peer.send("put 0 0 60 4\r\nwork\r\nreserve\r\n");
    }
    for peer in &mut peers {
        assert!(peer.line().starts_with("INSERTED "));
        assert!(peer.line().starts_with("RESERVED "));
        assert_eq!(peer.body(4), b"work");
    }
    assert_eq!(peers[0].stat("current-connections"), COUNT.to_string());
    assert_eq!(peers[0].stat("current-jobs-reserved"), COUNT.to_string());
    drop(peers.split_off(1));
    let mut left = peers.remove(0);
    assert!(wait_until(START_LIMIT, || left.stat("current-connections") == "1"));
    assert_eq!(left.stat("current-jobs-reserved"), "1");
}

// L1.22
#[test]
fn connections_reset_in_the_queue_stop_nothing() {
    let server = serve(&[]);
    let mut first = Peer::of(&server);
    assert_eq!(first.ask("list-tube-used"), "USING default");
    server.signal(Signal::SIGSTOP).unwrap();
    let mut live = Vec::new();
    for _ in 0..50 {
        let mut gone = Peer::of(&server);
        gone.send("put 0 0 1 1\r\nx\r\n");
        gone.reset();
        live.push(Peer::of(&server));
    }
    server.signal(Signal::SIGCONT).unwrap();
    for peer in &mut live {
        assert_eq!(peer.ask("list-tube-used"), "USING default");
    }
    let only_live = || first.stat("current-connections") == "51";
    assert!(wait_until(START_LIMIT, only_live));
}
