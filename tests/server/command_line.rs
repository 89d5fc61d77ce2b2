//! The command line and how the program ends when it cannot serve: streams, messages and exit
//! statuses as scripts know them.

use std::collections::BTreeSet;
use std::net::TcpListener;

use nix::unistd::Uid;

use crate::fixture::{Listen, START_LIMIT, wait_until};
use crate::peer::Peer;
use crate::program::{Ended, PROGRAM, can_run, ours, ours_after, run, serve, skip, start, words};

/// Whether the first line on standard error is this, behind the program's name.
fn begins(ended: &Ended, message: &str) -> bool {
    ended.stderr.starts_with(&format!("{PROGRAM}: {message}\n"))
}

// L5.1, L5.2, L5.3, L5.4, Q24
#[test]
fn a_mistake_in_the_command_line_ends_with_status_5_and_the_help() {
    let cases: [(&[&str], &str); 16] = [
        (&["-x"], "unknown flag: -x"),
        (&["--owners", "2"], "flag needs --sharded: --owners"),
        (
            &["--sharded", "--owners=0"],
            "invalid number: 0, --owners takes 1 to 64",
        ),
        (&["child", "d", "-V"], "unknown argument: -V"),
        (&["-Vx"], "unknown flag: -x"),
        (&["--nothing"], "unknown flag: --nothing"),
        (&["--"], "unknown flag: --"),
        (&["word"], "unknown argument: word"),
        (&["-"], "unknown argument: -"),
        (&[""], "unknown argument: "),
        (&["-p"], "flag requires an argument: -p"),
        (&["-z", "1x"], "invalid size: 1x"),
        (&["-z", ""], "invalid size: "),
        (&["-f", "-v"], "invalid size: -v"),
        (&["-s", "-1"], "invalid size: -1"),
        (&["-x", "-v"], "unknown flag: -x"),
    ];
    for (args, message) in cases {
        let ended = run(&ours(args));
        assert_eq!(ended.status, Some(5), "{args:?} {ended:?}");
        assert!(begins(&ended, message), "{args:?} {ended:?}");
        assert!(
            ended
                .stderr
                .contains(&format!("\nUse: {PROGRAM} [OPTIONS]\n"))
        );
        assert_eq!(ended.stdout, "");
    }
}

// L5.1, L5.2
#[test]
fn the_version_goes_to_standard_output_and_ends_with_status_0() {
    let cases: [(&[&str], &str); 4] = [
        (&["-v"], "beanstalkd 1.13.0"),
        (&["-v", "-x"], "beanstalkd 1.13.0"),
        (&["-VFv", "word"], "beanstalkd 1.13.0"),
        (
            &["--version"],
            concat!("beanshard ", env!("CARGO_PKG_VERSION")),
        ),
    ];
    for (args, beginning) in cases {
        let ended = run(&ours(args));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.stdout.starts_with(beginning), "{ended:?}");
        assert_eq!(ended.stdout.lines().count(), 1);
        assert_eq!(ended.stderr, "");
    }
}

// L5.1, K18
#[test]
fn the_short_flag_for_help_writes_to_standard_error_and_the_long_one_does_not() {
    let (short, long) = (run(&ours(&["-h", "-x"])), run(&ours(&["--help"])));
    assert_eq!((short.status, long.status), (Some(0), Some(0)));
    assert!(
        short.stderr.starts_with(&format!("Use: {PROGRAM} ")),
        "{short:?}"
    );
    assert_eq!(short.stderr, long.stdout);
    assert_eq!((&*short.stdout, &*long.stderr), ("", ""));
}

// L5.2, K18
#[test]
fn flags_of_old_and_a_limit_too_high_are_warned_about_and_stop_nothing() {
    let server = serve(&["-c", "-n", "-z", "1073741825"]);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.stat("max-job-size"), "1073741824");
    let output = server.output();
    let count = |text: &str| output.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("flag without effect: -c"), 1, "{output}");
    assert_eq!(count("flag without effect: -n"), 1, "{output}");
    assert_eq!(
        count("max job size lowered from 1073741825 to 1073741824"),
        1
    );
}

// L5.1, L5.2
#[test]
fn of_a_flag_given_twice_the_later_counts() {
    let server = serve(&["-z100", "-s", "1", "-z", " 7", "-s4096"]);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.stat("max-job-size"), "7");
    assert_eq!(peer.stat("binlog-max-size"), "4096");
}

// L5.4
#[cfg(target_os = "linux")]
#[test]
fn the_status_is_the_same_when_nobody_can_be_told() {
    let ended = run(&ours_after(
        "exec 2>/dev/full",
        &["-c", "-p", "no-such-service"],
    ));
    assert_eq!(ended.status, Some(111), "{ended:?}");
}

// L5.4, L5.6
#[test]
fn without_a_socket_it_ends_with_status_111_and_names_the_step() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let unix = |path: &str| format!("unix:{path}");
    let file = file.display().to_string();
    let cases = [
        (
            vec!["-l".into(), "127.0.0.1".into(), "-p".into(), port],
            "bind(): 127.0.0.1:",
        ),
        (
            vec!["-l".into(), "no-such-host.invalid".into()],
            "getaddrinfo(): no-such-host",
        ),
        (
            vec!["-p".into(), "no-such-service".into()],
            "getaddrinfo(): *:no-such-service",
        ),
        (
            vec!["-l".into(), unix(&file)],
            "another file already exists in the given path",
        ),
        (
            vec!["-l".into(), unix(&"x".repeat(108))],
            "not usable as the path of a socket",
        ),
        (
            vec!["-l".into(), unix("/no-such-folder/socket")],
            "bind(): /no-such-folder/socket",
        ),
    ];
    for (args, step) in cases {
        let ended = run(&ours(&args));
        assert_eq!(ended.status, Some(111), "{args:?} {ended:?}");
        assert!(
            begins_with_socket(&ended) && ended.stderr.contains(step),
            "{ended:?}"
        );
        assert_eq!(ended.stdout, "");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

fn begins_with_socket(ended: &Ended) -> bool {
    let last = ended.stderr.lines().last().unwrap_or_default();
    last.starts_with(&format!("{PROGRAM}: make_server_socket(): "))
}

// L5.4, L5.7
#[test]
fn an_inherited_socket_that_is_none_ends_with_status_111() {
    let shell = |line: &str| ours_after(&format!("export LISTEN_PID=$$ {line}"), &[]);
    let cases = [
        (shell("LISTEN_FDS=junk"), "LISTEN_FDS=junk"),
        (shell("LISTEN_FDS=0"), "LISTEN_FDS=0"),
        (
            shell("LISTEN_FDS=1; exec 3<&-"),
            "inherited socket 3: cannot take it over",
        ),
        (
            shell("LISTEN_FDS=1; exec 3</dev/null"),
            "inherited socket 3: not a listening",
        ),
    ];
    for (words, step) in cases {
        let ended = run(&words);
        assert_eq!(ended.status, Some(111), "{words:?} {ended:?}");
        assert!(
            begins_with_socket(&ended) && ended.stderr.contains(step),
            "{ended:?}"
        );
    }
}

// L5.4
#[test]
fn an_unknown_user_ends_with_status_33() {
    let ended = run(&ours(&["-l", "127.0.0.1", "-p", "0", "-u", "no-such-user"]));
    assert_eq!(ended.status, Some(33), "{ended:?}");
    assert!(
        begins(&ended, "getpwnam(no-such-user): no such user"),
        "{ended:?}"
    );
}

// L5.4
#[test]
fn a_user_that_it_may_not_become_ends_with_status_34() {
    let args = ["-l", "127.0.0.1", "-p", "0"];
    let words = if !Uid::effective().is_root() {
        words(&ours(&args), &["-u", "root"])
    } else if can_run(&["setpriv", "--bounding-set=-all", "true"]) {
        let head = words(&["setpriv", "--bounding-set=-all"], &ours(&args));
        words(&head, &["-u", "nobody"])
    } else {
        return skip("root's rights cannot be given up without setpriv");
    };
    let ended = run(&words);
    assert_eq!(ended.status, Some(34), "{ended:?}");
    assert!(ended.stderr.contains(": cannot become user "), "{ended:?}");
}

// L5.4
#[test]
fn a_lack_of_descriptors_at_the_start_is_told_by_status_and_step() {
    let mut seen = BTreeSet::new();
    // With three the loader would already fail. At some number there are enough.
    for limit in 4..32 {
        let words = ours_after(&format!("ulimit -n {limit}"), &[]);
        let mut server = start(&words, Listen::UnixPathUnasked);
        let mut ended = None;
        wait_until(START_LIMIT, || {
            ended = server.ended();
            ended.is_some() || server.output().contains(" ready ")
        });
        let output = server.output();
        let Some(status) = ended else {
            assert!(output.contains(" ready "), "{output}");
            break;
        };
        let status = status.code().expect("it ends by itself");
        let step = match status {
            1 => "cannot make the event queue: ",
            50 => "/dev/urandom: ",
            111 => "cannot make the channel for signals: ",
            other => panic!("status {other}: {output}"),
        };
        assert!(output.contains(step), "status {status}: {output}");
        seen.insert(status);
    }
    assert_eq!(seen, BTreeSet::from([1, 50, 111]));
}
