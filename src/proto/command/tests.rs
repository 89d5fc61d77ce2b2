//! What lines are taken for, one by one and at large.

use proptest::prelude::*;

use super::*;
use crate::base::property_config;

#[track_caller]
fn check(line: &[u8], expected: Command<'_>) {
    assert_eq!(parse(line), Ok(expected), "{}", line.escape_ascii());
}

#[track_caller]
fn check_each_is(fault: Fault, lines_with_bars: &[u8]) {
    for line in lines_with_bars.split(|&byte| byte == b'|') {
        let found = parse(line).map_err(|refused| refused.fault);
        assert_eq!(found, Err(fault), "{}", line.escape_ascii());
    }
}

fn tube(name: &'static str) -> TubeName<'static> {
    TubeName::parse(name.as_bytes()).unwrap()
}

fn put(body_len: u32, trailing: Trailing) -> Command<'static> {
    Command::Put {
        pri: Pri(1),
        delay: Secs(2),
        ttr: Secs(3),
        body_len,
        trailing,
    }
}

#[test]
fn every_command_is_recognised() {
    check(b"put 1 2 3 4", put(4, Trailing::Nothing));
    check(b"peek 1", Command::Peek(JobId(1)));
    check(b"peek-ready", Command::PeekReady);
    check(b"peek-delayed", Command::PeekDelayed);
    check(b"peek-buried", Command::PeekBuried);
    check(b"reserve", Command::Reserve);
    check(
        b"reserve-with-timeout 0",
        Command::ReserveWithTimeout(Secs(0)),
    );
    check(b"reserve-job 1", Command::ReserveJob(JobId(1)));
    check(b"delete 1", Command::Delete(JobId(1)));
    check(
        b"release 1 2 3",
        Command::Release {
            id: JobId(1),
            pri: Pri(2),
            delay: Secs(3),
        },
    );
    check(
        b"bury 1 2",
        Command::Bury {
            id: JobId(1),
            pri: Pri(2),
        },
    );
    check(b"kick 9", Command::Kick { count: 9 });
    check(b"kick-job 1", Command::KickJob(JobId(1)));
    check(b"touch 1", Command::Touch(JobId(1)));
    check(b"stats-job 1", Command::StatsJob(JobId(1)));
    check(b"stats-tube x", Command::StatsTube(tube("x")));
    check(b"stats", Command::Stats);
    check(b"use x_y", Command::Use(tube("x_y")));
    check(b"watch x", Command::Watch(tube("x")));
    check(b"ignore x", Command::Ignore(tube("x")));
    check(b"list-tubes-watched", Command::ListTubesWatched);
    check(b"list-tube-used", Command::ListTubeUsed);
    check(b"list-tubes", Command::ListTubes);
    check(b"quit", Command::Quit);
    check(
        b"pause-tube x 3",
        Command::PauseTube {
            tube: tube("x"),
            pause: Secs(3),
        },
    );
}

#[test]
fn a_line_without_a_known_prefix_is_unknown() {
    check_each_is(
        Fault::UnknownCommand,
        b"|nont10knowncommand|put|peek|delete|release|bury|kick|kick-job|touch|use|\
          watch|ignore|peekfoo|peek-foo|kickx|list-tube|kick-jobs 1| stats|Stats|PUT|\
          put\t0 0 1 1|use\tx|\nlist-tube-used|\rstats",
    );
}

#[test]
fn a_known_prefix_with_the_wrong_rest_is_malformed() {
    check_each_is(
        Fault::BadFormat,
        b"put |peek |delete |release |bury |kick |kick-job |touch |use |watch |ignore |\
          stats-job |stats-tube |reserve-job |reserve-with-timeout |peek-readyx|\
          peek-ready |peek-ready 1|peek-delayed |peek-buried1|reserve |reservex|\
          reserve-with-timeout|reserve-with-timeoutx|reserve-job|stats |statsx|\
          stats-job|stats-tube|stats-tubes|list-tubesx|list-tubes-watche|\
          list-tubes-watchedx|list-tube-used |list-tube-used\r|pause-tube|pause-tube |\
          pause-tubedefault",
    );
}

#[test]
fn quit_ignores_what_follows_and_pause_tube_needs_no_space() {
    check(b"quitx", Command::Quit);
    check(b"quit now", Command::Quit);
    let pause = |name, secs| Command::PauseTube {
        tube: tube(name),
        pause: Secs(secs),
    };
    check(b"pause-tubedefault 0", pause("default", 0));
    check(b"pause-tubex 0", pause("x", 0));
}

#[test]
fn a_malformed_line_names_the_prefix_it_fell_to() {
    for (line, kind) in [
        (&b"reservex"[..], Some(Kind::Reserve)),
        (b"reserve-job", Some(Kind::Reserve)),
        (b"stats-tube", Some(Kind::Stats)),
        (b"list-tubes-watche", Some(Kind::ListTubes)),
        (b"pause-tube", Some(Kind::PauseTube)),
        (b"foo", None),
    ] {
        assert_eq!(parse(line).unwrap_err().kind, kind);
    }
}

#[test]
fn ids_are_whole_numbers_of_64_bits_at_the_end_of_the_line() {
    for word in [
        "delete",
        "touch",
        "peek",
        "stats-job",
        "kick-job",
        "reserve-job",
    ] {
        for argument in [
            "-1",
            "+1",
            "0x1",
            "1x",
            "1 2",
            "1 ",
            "foo111",
            "111foo",
            "a111",
            "!@#!@#",
            "111 222",
            "18446744073709551616",
            "184467440737095516160000000000000000000000000000",
            "\t1",
            "1\t",
            "1\r",
            "",
        ] {
            check_each_is(Fault::BadFormat, format!("{word} {argument}").as_bytes());
        }
        for id in ["0", "18446744073709551615", "00001", "   7"] {
            assert!(
                parse(format!("{word} {id}").as_bytes()).is_ok(),
                "{word} {id}"
            );
        }
    }
}

#[test]
fn the_last_of_several_numbers_ends_the_line() {
    check_each_is(
        Fault::BadFormat,
        b"release 1 0|release 1 x 0|release 1 0 0 0|release 1 -1 0|\
          release 18446744073709551616 1 1|release foo111 1 1|release 111foo 1 1|\
          release 1 abc 1|release 1 1 abc|release 1 1 1 |release 1 1 1x|\
          release 1 4294967296 0|release 1 0 4294967296|bury 1|bury 1 1x|bury 1 1 |\
          bury 111abc 2|bury 111|bury 111 222abc|bury 1 4294967296",
    );
    check(
        b"release 18446744073709551615 4294967295 4294967295",
        Command::Release {
            id: JobId(u64::MAX),
            pri: Pri(u32::MAX),
            delay: Secs(u32::MAX),
        },
    );
    check(
        b"bury  1  4294967295",
        Command::Bury {
            id: JobId(1),
            pri: Pri(u32::MAX),
        },
    );
}

#[test]
fn reserve_with_timeout_takes_one_number_of_31_bits() {
    check_each_is(
        Fault::BadFormat,
        b"reserve-with-timeout poop|reserve-with-timeout |reserve-with-timeout 1x|\
          reserve-with-timeout -1|reserve-with-timeout 0 0|reserve-with-timeout +1|\
          reserve-with-timeout 1 |reserve-with-timeout 2147483648|\
          reserve-with-timeout 4294967295|reserve-with-timeout 4294967296",
    );
    check(
        b"reserve-with-timeout  2147483647",
        Command::ReserveWithTimeout(Secs(RESERVE_TIMEOUT_SECS_MAX)),
    );
}

#[test]
fn kick_is_lenient() {
    for (line, count) in [
        (&b"kick 1x"[..], 1),
        (b"kick 1 2", 1),
        (b"kick \t+7", 7),
        (b"kick -1", u32::MAX),
        (b"kick 4294967296", 0),
        (b"kick 4294967297", 1),
    ] {
        check(line, Command::Kick { count });
    }
    check_each_is(Fault::BadFormat, b"kick x|kick -|kick 18446744073709551616");
}

#[test]
fn names_are_the_whole_rest_of_the_line() {
    let longest = [b'x'; 200];
    let too_long = [b'x'; 201];
    for word in ["use ", "watch ", "ignore ", "stats-tube "] {
        let line = |name: &[u8]| [word.as_bytes(), name].concat();
        assert!(parse(&line(&longest)).is_ok());
        assert!(parse(&line(b"x-")).is_ok());
        for name in [
            &too_long[..],
            b"-x",
            b" x",
            b"x ",
            b"some_tub e",
            b"a\nb",
            b"a\rb",
            b"a*",
        ] {
            check_each_is(Fault::BadFormat, &line(name));
        }
    }
}

#[test]
fn pause_tube_separates_its_name_by_what_is_no_name_character() {
    let pause = |name, secs| Command::PauseTube {
        tube: tube(name),
        pause: Secs(secs),
    };
    check(b"pause-tube   x   3", pause("x", 3));
    check(b"pause-tube x-1 4294967295", pause("x-1", u32::MAX));
    check_each_is(
        Fault::BadFormat,
        b"pause-tube default|pause-tube default0|pause-tube 5|pause-tube default -1|\
          pause-tube default 1x|pause-tube default 1 |pause-tube default 4294967296|\
          pause-tube x\t3|pause-tube *x 3",
    );
}

#[test]
fn the_longest_command_fits() {
    let line = format!("pause-tube {} 4294967295", "x".repeat(200));
    assert_eq!(line.len(), 222);
    assert!(parse(line.as_bytes()).is_ok());
}

#[test]
fn pause_tube_counts_a_name_that_is_then_refused() {
    let counted = |line: &[u8]| parse(line).unwrap_err().counted;
    assert!(counted(b"pause-tube -x 0"));
    assert!(counted(
        [b"pause-tube ", &[b'x'; 201][..], b" 0"]
            .concat()
            .as_slice()
    ));
    assert!(!counted(b"pause-tube -x"));
    assert!(!counted(b"pause-tube -x 0 "));
    assert!(!counted(b"pause-tube -x 0\0"));
    assert!(!counted(b"pause-tube *x 0"));
    assert!(!counted(b"bury 1"));
    assert!(!counted(b"put 0 0 0"));
}

#[test]
fn put_takes_four_numbers_and_says_what_is_behind_them() {
    check(b"put  1  2  3  4", put(4, Trailing::Nothing));
    check(b"put 1 2 3 4294967295", put(u32::MAX, Trailing::Nothing));
    check(b"put 1 2 3 7 junk", put(7, Trailing::Apart));
    check(b"put 1 2 3 7 ", put(7, Trailing::Apart));
    check(b"put 1 2 3 10b", put(10, Trailing::Attached));
    check(b"put 1 2 3 7\r", put(7, Trailing::Attached));
    check(b"put 1 2 3 70000x", put(70000, Trailing::Attached));
    check(
        b"put 4294967295 4294967295 4294967295 0",
        Command::Put {
            pri: Pri(u32::MAX),
            delay: Secs(u32::MAX),
            ttr: Secs(u32::MAX),
            body_len: 0,
            trailing: Trailing::Nothing,
        },
    );
}

#[test]
fn a_refused_put_announces_its_body_where_its_size_can_be_read() {
    for (line, body_len) in [
        (&b"put -1 0 60 7"[..], Some(7)),
        (b"put 4294967296 0 60 7", Some(7)),
        (b"put 0 -1 60 7", Some(7)),
        (b"put 512 -1 100 0", Some(0)),
        (b"put 0 4294967296 60 7", Some(7)),
        (b"put 0 0 4294967296 7", Some(7)),
        (b"put  x   0  60    7   junk", Some(7)),
        (b"put -1 0 60 4294967295", Some(u32::MAX)),
        (b"put -1kkdj9djjkd9 0 100 1", Some(1)),
        (b"put 0 0 0 4294967296", None),
        (b"put 0 0 0 !@#!@#", None),
        (b"put -1 0 60 10b", None),
        (b"put -1 0 60 -7", None),
        (b"put -1 0 60 +7", None),
        (b"put -1 0 60", None),
        (b"put 0 0 60 ", None),
        (b"put ", None),
        (b"put 0\t0 60 7", None),
        (b"put 0 0 60 7 \0", Some(7)),
        (b"put \0 0 60 7", Some(7)),
        (b"put 0 0 60 7\0", None),
    ] {
        assert_eq!(
            parse(line),
            Err(Refused {
                fault: Fault::BadFormat,
                kind: Some(Kind::Put),
                counted: false,
                body_len,
            }),
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn only_a_put_announces_a_body() {
    for line in [
        &b"release 0 0 60 7"[..],
        b"delete 1 2 3 4",
        b"pause-tube -x 0 60 7",
        b"foo 1 2 3 4",
    ] {
        assert_eq!(parse(line).unwrap_err().body_len, None);
    }
}

#[test]
fn a_nul_anywhere_makes_a_line_malformed() {
    check_each_is(
        Fault::BadFormat,
        b"\0|use foo\0bar|list-tube-used\0|delete 1\0|quit\0|kick 1\0|unknown\0|\0stats",
    );
}

#[test]
fn a_web_client_is_told_apart() {
    check_each_is(
        Fault::Http,
        b"GET / HTTP/1.1|PUT / HTTP/1.1|Host: x|hOST:|POST /\0",
    );
}

#[test]
fn kinds_stand_in_the_order_of_recognition() {
    let prefixes = Kind::ALL.map(Kind::prefix);
    assert_eq!(
        prefixes,
        [
            "put ",
            "peek ",
            "peek-ready",
            "peek-delayed",
            "peek-buried",
            "reserve-with-timeout ",
            "reserve-job ",
            "reserve",
            "delete ",
            "release ",
            "bury ",
            "kick ",
            "kick-job ",
            "touch ",
            "stats-job ",
            "stats-tube ",
            "stats",
            "use ",
            "watch ",
            "ignore ",
            "list-tubes-watched",
            "list-tube-used",
            "list-tubes",
            "quit",
            "pause-tube",
        ]
    );
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, index);
    }
    for byte in 0..=u8::MAX {
        let mut expected = Kind::ALL.to_vec();
        expected.retain(|kind| kind.prefix().as_bytes()[0] == byte);
        assert_eq!(Kind::beginning_with(byte), expected);
    }
}

#[test]
fn counted_commands_have_their_own_key() {
    for kind in Kind::ALL {
        let expected = match kind {
            Kind::Quit | Kind::KickJob | Kind::ReserveJob => None,
            counted => Some(format!("cmd-{}", counted.prefix().trim_end())),
        };
        assert_eq!(kind.stats_key(), expected.as_deref());
    }
}

#[test]
fn a_line_that_is_too_long_announces_a_body_if_its_fourth_word_has_ended() {
    for (beginning, expected) in [
        (&b"put 0 0 1 14 xxxx"[..], Some(14)),
        (b"put  -1  0 1 14 ", Some(14)),
        (b"put 0 0 1 14", None),
        (b"put 0 0 1 0000", None),
        (b"put 0 0 1 14x y", None),
        (b"put 0 0 1", None),
        (b"putter 0 0 1 14 x", None),
        (b"use 0 0 1 14 x", None),
    ] {
        let text = beginning.escape_ascii();
        assert_eq!(announced_len(beginning), expected, "{text}");
    }
}

/// The command as a client would send it, without its CR LF.
fn print(command: &Command<'_>) -> Vec<u8> {
    let arguments = match *command {
        Command::Put {
            pri,
            delay,
            ttr,
            body_len,
            trailing,
        } => {
            let trailing = match trailing {
                Trailing::Nothing => "",
                Trailing::Apart => " x",
                Trailing::Attached => "x",
            };
            format!("{} {} {} {body_len}{trailing}", pri.0, delay.0, ttr.0)
        }
        Command::Peek(id)
        | Command::ReserveJob(id)
        | Command::Delete(id)
        | Command::KickJob(id)
        | Command::Touch(id)
        | Command::StatsJob(id) => format!("{}", id.0),
        Command::ReserveWithTimeout(timeout) => format!("{}", timeout.0),
        Command::Release { id, pri, delay } => format!("{} {} {}", id.0, pri.0, delay.0),
        Command::Bury { id, pri } => format!("{} {}", id.0, pri.0),
        Command::Kick { count } => format!("{count}"),
        Command::StatsTube(tube)
        | Command::Use(tube)
        | Command::Watch(tube)
        | Command::Ignore(tube) => String::from_utf8(tube.as_bytes().to_vec()).unwrap(),
        Command::PauseTube { tube, pause } => {
            format!(" {} {}", String::from_utf8_lossy(tube.as_bytes()), pause.0)
        }
        Command::PeekReady
        | Command::PeekDelayed
        | Command::PeekBuried
        | Command::Reserve
        | Command::Stats
        | Command::ListTubesWatched
        | Command::ListTubeUsed
        | Command::ListTubes
        | Command::Quit => String::new(),
    };
    [command.kind().prefix().as_bytes(), arguments.as_bytes()].concat()
}

/// The command of this kind with these arguments.
fn command<'a>(kind: Kind, id: u64, [a, b, c, d]: [u32; 4], tube: TubeName<'a>) -> Command<'a> {
    let (id, pri, delay) = (JobId(id), Pri(a), Secs(b));
    match kind {
        Kind::Put => Command::Put {
            pri,
            delay,
            ttr: Secs(c),
            body_len: d,
            trailing: [Trailing::Nothing, Trailing::Apart, Trailing::Attached][a as usize % 3],
        },
        Kind::Peek => Command::Peek(id),
        Kind::PeekReady => Command::PeekReady,
        Kind::PeekDelayed => Command::PeekDelayed,
        Kind::PeekBuried => Command::PeekBuried,
        Kind::ReserveWithTimeout => Command::ReserveWithTimeout(Secs(a / 2)),
        Kind::ReserveJob => Command::ReserveJob(id),
        Kind::Reserve => Command::Reserve,
        Kind::Delete => Command::Delete(id),
        Kind::Release => Command::Release { id, pri, delay },
        Kind::Bury => Command::Bury { id, pri },
        Kind::Kick => Command::Kick { count: a },
        Kind::KickJob => Command::KickJob(id),
        Kind::Touch => Command::Touch(id),
        Kind::StatsJob => Command::StatsJob(id),
        Kind::StatsTube => Command::StatsTube(tube),
        Kind::Stats => Command::Stats,
        Kind::Use => Command::Use(tube),
        Kind::Watch => Command::Watch(tube),
        Kind::Ignore => Command::Ignore(tube),
        Kind::ListTubesWatched => Command::ListTubesWatched,
        Kind::ListTubeUsed => Command::ListTubeUsed,
        Kind::ListTubes => Command::ListTubes,
        Kind::Quit => Command::Quit,
        Kind::PauseTube => Command::PauseTube {
            tube,
            pause: Secs(a),
        },
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.as_slice())
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn a_printed_command_reads_as_itself(
        kind in any_kind(),
        id: u64,
        numbers: [u32; 4],
        name in "[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}",
    ) {
        let tube = TubeName::parse(name.as_bytes()).unwrap();
        let command = command(kind, id, numbers, tube);
        prop_assert_eq!(command.kind(), kind);
        let printed = print(&command);
        prop_assert_eq!(parse(&printed), Ok(command));
    }

    #[test]
    fn any_bytes_are_a_command_or_refused(line in prop::collection::vec(any::<u8>(), 0..250)) {
        let _ = parse(&line);
    }

    #[test]
    fn any_arguments_are_read_or_refused(
        kind in any_kind(),
        arguments in "[ -]?[0-9x]{0,21}([ x\t\0-][0-9a]{0,11}){0,6}",
    ) {
        let line = [kind.prefix().as_bytes(), arguments.as_bytes()].concat();
        match parse(&line) {
            Ok(command) => {
                let printed = print(&command);
                prop_assert_eq!(parse(&printed), Ok(command));
                prop_assert!(!arguments.contains('\0'));
            }
            Err(refused) => {
                prop_assert_eq!(refused.fault, Fault::BadFormat);
                prop_assert!(refused.body_len.is_none() || refused.kind == Some(Kind::Put));
                prop_assert!(!refused.counted || refused.kind == Some(Kind::PauseTube));
            }
        }
    }
}
